"""Fetches several tables of a database in one metastore call."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from airflow_hive_opt.spark.session.spark_compat import items, to_scala

log = logging.getLogger(__name__)


def fetched_together(jvm: Any, external: Any, names: Iterable[str]) -> dict[str, Any]:
    """The JVM's descriptions of the tables ``database.table`` by name, one call for each database.

    ``external`` is Spark's external catalog. Tables that are alone in their database, or that the
    call does not return, are left out.
    """
    databases: dict[str, list[str]] = {}
    for name in names:
        if name.count(".") == 1:
            database, _, short = name.lower().rpartition(".")
            databases.setdefault(database, []).append(short)
    fetched = {}
    for database, tables in databases.items():
        if len(tables) < 2:
            continue
        try:
            for metadata in items(external.getTablesByName(database, to_scala(jvm, tables))):
                fetched[f"{database}.{metadata.identifier().table()}".lower()] = metadata
        except (PySparkException, Py4JError) as error:  # some metastores have no such call
            log.debug("the tables of %s are looked up one by one: %s", database, error)
    return fetched
