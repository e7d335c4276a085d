"""Small tables that keep their own list of files: rows for them, and the worker's keys of them."""

from __future__ import annotations

import re

from upath import UPath

from airflow_hive_opt.metastores.statement_catalog import StatementCatalog
from airflow_hive_opt.metastores.thrift.metastore import ThriftMetastore
from airflow_hive_opt.worker.engine import MetastoreTables
from airflow_hive_opt.worker.key_query import collect
from airflow_hive_opt.worker.lakes.catalog import StatementTables
from airflow_hive_opt.worker.settings import other_catalogs
from airflow_hive_opt.worker.tables import Tables
from tests.worker.small_tables import BOUNDS, key_source

TYPES = {
    "i": "CAST(id - 3 AS INT)",
    "l": "id * 10000000000",
    "m": "CAST(id / 4 AS DECIMAL(7,2))",
    "s": "CASE WHEN id % 3 = 0 THEN NULL WHEN id = 4 THEN 'é b/c%' ELSE concat('s', id) END",
    "d": "date_add(DATE'2024-02-27', CAST(id AS INT))",
    "b": "id % 2 = 0",
    "t": "TIMESTAMP'2024-01-01 00:00:00'",
    "f": "CAST(id AS DOUBLE)",
    "n": "named_struct('a', id)",
}
ROWS = "SELECT " + ", ".join(f"{sql} AS {name}" for name, sql in TYPES.items()) + " FROM range({})"
EVALUATED = ("i", "l", "m", "s", "d", "b")


def keys_of(conf, name, columns):
    """The worker's keys of a table, as a set of tuples; ``conf`` are Spark's settings."""
    metastore = ThriftMetastore(conf["spark.hadoop.hive.metastore.uris"])
    own = StatementCatalog(metastore, catalogs=other_catalogs(conf))
    with metastore:
        known = StatementTables(own, metastore, conf, _open)
        tables = Tables(MetastoreTables(known, metastore), _open, lake=known.lake)
        known.table(name)
        listed = ", ".join(f"`x`.`{column}`" for column in columns)
        sql = f"SELECT DISTINCT {listed} FROM {name} AS `x`"
        source = key_source(sql, *(f"x.{column}" for column in columns))
        found = collect(source, tables, BOUNDS, {})
    assert found.exact
    return set(found.rows)


def _open(uri):
    return UPath(re.sub("^file:/*", "/", uri))
