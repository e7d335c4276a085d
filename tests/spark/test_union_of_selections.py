"""The union of the partitions that the readers of a CTE need."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_hive_opt.local_task.selection import union_of
from airflow_hive_opt.metastores.partitions import Partition


@dataclass
class Selected:
    partitions: list[Partition]


def test_the_union_has_every_partition_once_with_its_location():
    named, located = Partition(("a",)), Partition(("a",), "file:/a")
    other, null = Partition(("b",), "file:/b"), Partition((None,))
    assert union_of([Selected([located, other]), Selected([named, null])]) == (located, other, null)
    assert union_of([Selected([named]), Selected([located])]) == (located,)
    assert union_of([Selected([other, null])]) == (other, null)
    assert union_of([Selected([])]) == ()
