"""What the engine does with conditions on partition names of which a part is left out."""

from __future__ import annotations

import pytest
from upath import UPath

from airflow_hive_opt.documents.job import KeyBounds
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.pruning.decisions import Layer
from airflow_hive_opt.statement.catalog import Column, Table
from airflow_hive_opt.worker.engine import WorkerEngine
from airflow_hive_opt.worker.tables import Tables
from tests.worker.small_tables import Known

TABLE = Table("s", (), (Column("ds", "string"), Column("hr", "int")))
PARTITIONS = [Partition(("a", "1")), Partition(("b", "2"))]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("s.hr = 1 AND upper(s.ds) = 'B'", [0]),
        ("s.hr = 1 AND mine(s.ds) = 'B'", None),
        ("s.hr = 1 AND db.mine(s.ds) = 'B'", None),
    ],
)
def test_a_users_function_may_return_another_value_at_the_map_join(condition, expected):
    engine = WorkerEngine(Tables(Known(), UPath), KeyBounds(), {})
    found = engine.fulfilling(TABLE, (Layer("s"),), PARTITIONS, [condition])
    assert found == (None if expected is None else [PARTITIONS[at] for at in expected])
    assert engine.leaves_out
