"""Which statements the worker leaves to Spark, because sizes decide whether they are rewritten."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from upath import UPath

from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.metastores.hive_tables import UNKNOWN_SIZE
from airflow_hive_opt.metastores.statement_catalog import StatementCatalog
from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.statement.catalog import Column, Table
from airflow_hive_opt.worker.planning import planned
from airflow_hive_opt.worker.sizes import bytes_of_files
from airflow_hive_opt.worker.unanswered import Unanswered

COLUMNS = (Column("k", "int"), Column("v", "int"))
# Orders that another supplier has a part in: a shape that the Correlation Optimizer knows.
SQL = """
SELECT f.v FROM f JOIN d ON f.p = d.k WHERE d.v = 1
AND EXISTS (SELECT 1 FROM f o WHERE o.k = f.k AND o.v <> f.v)
"""
LARGE = 10**10


def plan_of(size, partitioned, measured=None):
    """The plan of the statement for a large table of the size."""
    own = Column("p", "int")
    columns, keys = (COLUMNS, (own,)) if partitioned else ((*COLUMNS, own), ())
    tables = {
        "default.f": Table("default.f", columns, keys, total_bytes=size),
        "default.d": Table("default.d", COLUMNS, total_bytes=10),
    }
    metastore = SimpleNamespace(
        look_up=lambda names: None,
        table=tables.get,
        storage=lambda table: Storage("file:/f", "parquet"),
    )
    return planned(Job(SQL), StatementCatalog(metastore, measured=lambda _: measured), {})


def test_the_worker_plans_a_partitioned_table_without_statistics():
    """Spark measures none either, and so rewrites nothing."""
    for size in (None, UNKNOWN_SIZE):
        (pruned,) = [each for each in plan_of(size, partitioned=True).decisions if each.pruned]
        assert pruned.table.name == "default.f"


def test_a_table_that_spark_measures_is_measured_by_the_worker_too():
    plan_of(None, partitioned=False, measured=10)
    for measured in (None, LARGE):  # not known, and large enough to be rewritten
        with pytest.raises(Unanswered, match="statistics decide"):
            plan_of(None, partitioned=False, measured=measured)


def test_bytes_of_files_are_unknown_for_an_absent_or_nested_folder(tmp_path):
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "b").write_bytes(b"45")
    (tmp_path / "_hidden").write_bytes(b"6")
    assert bytes_of_files(Storage(str(tmp_path), "parquet"), UPath) == 5
    assert bytes_of_files(Storage(str(tmp_path / "absent"), "parquet"), UPath) is None
    (tmp_path / "folder").mkdir()
    assert bytes_of_files(Storage(str(tmp_path), "parquet"), UPath) is None
