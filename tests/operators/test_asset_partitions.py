from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_hive_opt.asset_partitions import MOST_KEYS, NoPartitionKeysError, partition_keys
from airflow_hive_opt.runtime.descriptor import Decision, Descriptor
from airflow_hive_opt.runtime.partitions import Partition
from tests.operators.test_lineage import FACT


def descriptor(*targets):
    decisions = [Decision(each.alias, each.table, "PRUNED", "") for each in targets]
    return Descriptor("q", "2026-01-01T00:00:00+00:00", targets, tuple(decisions))


@pytest.mark.parametrize("table", ["dw.fact", "FACT"])
def test_values_in_the_order_of_the_columns(table):
    found = partition_keys(descriptor(FACT), table)
    assert found == ["a/b|__HIVE_DEFAULT_PARTITION__", "c|2"]


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ((replace(FACT, table="dw.other"),), "its scan was not pruned"),
        ((FACT, replace(FACT, table="x.fact")), "tables of this name were pruned"),
        ((replace(FACT, partitions=(Partition(("x" * 250, "1")),)),), "1 to 250 characters"),
        (
            (replace(FACT, partitions=tuple(Partition((str(n), "1")) for n in range(1001))),),
            f"1,001 partitions would be as many asset events, and {MOST_KEYS:,} are the most",
        ),
    ],
)
def test_no_keys(targets, message):
    with pytest.raises(NoPartitionKeysError, match=message):
        partition_keys(descriptor(*targets), "fact")
