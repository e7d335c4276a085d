"""What the engine answers for conditions on partition names that it evaluates only in part."""

from __future__ import annotations

import pytest
from upath import UPath

from airflow_hive_opt.documents.job import KeyBounds
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.pruning.decisions import Layer
from airflow_hive_opt.statement.catalog import Column, Table
from airflow_hive_opt.worker.engine import MetastoreTables, WorkerEngine
from airflow_hive_opt.worker.tables import Tables
from airflow_hive_opt.worker.unanswered import Unanswered
from tests.worker.small_tables import Known

TABLE = Table("s", (), (Column("ds", "string"), Column("hr", "int")))
PARTITIONS = [Partition(("a", "1")), Partition(("b", "2"))]


@pytest.mark.parametrize(
    ("condition", "expected", "leaves_out"),
    [
        ("s.hr = 1", [0], False),
        ("s.hr = 1 AND s.ds = 5", [0, 1], True),
        ("s.hr = 1 AND upper(s.ds) = 'B'", None, True),
        ("s.hr = 1 AND mine(s.ds) = 'B'", None, True),
    ],
)
def test_a_condition_that_is_left_out_selects_no_partitions(condition, expected, leaves_out):
    """Nothing tells whether it is deterministic; one that is only weakened is."""
    engine = WorkerEngine(Tables(Known(), UPath), KeyBounds(), {})
    found = engine.fulfilling(TABLE, (Layer("s"),), PARTITIONS, [condition])
    assert found == (None if expected is None else [PARTITIONS[at] for at in expected])
    assert engine.leaves_out == leaves_out


def test_a_partition_that_is_not_found_by_its_name_is_left_to_spark():
    """It may be there: without its rows, keys would be missing."""

    class Metastore:
        def partition_names(self, table):
            return PARTITIONS

        def partition_storages(self, table, partitions):
            return [Storage("file:/a", "parquet"), None]

    with pytest.raises(Unanswered, match="a partition of s was dropped meanwhile"):
        MetastoreTables(None, Metastore()).stored_partitions(TABLE)
