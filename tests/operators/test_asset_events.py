"""The partition keys of asset events."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import unquote

import pytest

from airflow_hive_opt.documents.descriptor import Decision, Descriptor
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.provider.asset_events import (
    MOST_KEYS,
    NoPartitionKeysError,
    partition_keys_in,
)
from airflow_hive_opt.statement.scan_ref import ScanRef
from tests.operators.test_lineage import FACT


def descriptor(*targets):
    decisions = [Decision(each.scan, "PRUNED", "") for each in targets]
    return Descriptor("q", "2026-01-01T00:00:00+00:00", targets, tuple(decisions))


def of_table(name):
    return replace(FACT, scan=ScanRef("f", name, (40, 47), "f (line 2)"))


@pytest.mark.parametrize("table", ["dw.fact", "FACT"])
def test_partition_keys_have_the_values_in_the_order_of_the_columns(table):
    found = partition_keys_in(descriptor(FACT), table)
    assert found == ["a/b|__HIVE_DEFAULT_PARTITION__", "c|2"]


def test_different_partitions_have_different_keys():
    values = [("a|b", "c"), ("a", "b|c"), ("a%7Cb", "c"), ("100%", "x y/z=ü")]
    target = replace(FACT, partitions=tuple(map(Partition, values)))
    found = partition_keys_in(descriptor(target), "fact")
    assert found == ["a%7Cb|c", "a|b%7Cc", "a%257Cb|c", "100%25|x y/z=ü"]
    assert [tuple(map(unquote, key.split("|"))) for key in found] == values


def test_airflows_partition_mappers_read_the_keys():
    pytest.importorskip("airflow.partition_mappers", reason="this Airflow has no mappers")
    from airflow.partition_mappers.identity import IdentityMapper
    from airflow.partition_mappers.product import ProductMapper
    from airflow.partition_mappers.temporal import StartOfDayMapper

    target = replace(FACT, partitions=(Partition(("n|s", "2026-01-31T05:00:00")),))
    (key,) = partition_keys_in(descriptor(target), "fact")
    mapper = ProductMapper(IdentityMapper(), StartOfDayMapper())
    assert mapper.to_downstream(key) == "n%7Cs|2026-01-31"


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ((of_table("dw.other"),), "pruned no scan of fact"),
        ((FACT, of_table("x.fact")), "pruned several tables named fact"),
        ((replace(FACT, partitions=(Partition(("x" * 250, "1")),)),), "1 to 250 characters"),
        (
            (replace(FACT, partitions=tuple(Partition((str(n), "1")) for n in range(1001))),),
            f"1,001 partitions of fact would create .* events, but the limit is {MOST_KEYS:,}",
        ),
    ],
)
def test_scans_that_were_not_pruned_have_no_partition_keys(targets, message):
    with pytest.raises(NoPartitionKeysError, match=message):
        partition_keys_in(descriptor(*targets), "fact")
