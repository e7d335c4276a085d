"""The gates between the local task and the map join."""

import dataclasses

import pytest

from airflow_hive_opt.documents.gates import GateClosed, Gates
from airflow_hive_opt.metastores.partitions import Partition
from tests.documents.test_descriptor import descriptor


def of(*sizes):
    base = descriptor()
    partitions = tuple(Partition((str(n),), bytes=size) for n, size in enumerate(sizes))
    target = dataclasses.replace(base.targets[0], partitions=partitions, total=9)
    return dataclasses.replace(base, targets=(target,))


def test_max_bytes_refuses_a_scan_of_more_bytes():
    Gates(max_bytes=30).check(of(10, 20))
    with pytest.raises(GateClosed, match="would read 30 bytes, but max_bytes is 29"):
        Gates(max_bytes=29).check(of(10, 20))


def test_max_bytes_refuses_partitions_of_unknown_size():
    with pytest.raises(GateClosed, match="does not know the size of 1 of 2 partitions"):
        Gates(max_bytes=30).check(of(10, None))
    Gates(max_bytes=0).check(of())


@pytest.mark.parametrize("name", ["max_partitions", "max_bytes"])
def test_a_negative_limit_is_an_error(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 0, not -1"):
        Gates(**{name: -1})


@pytest.mark.parametrize("name", ["on_empty", "on_no_prune"])
def test_an_unknown_value_of_a_gate_is_an_error(name):
    with pytest.raises(ValueError, match=f"{name} must be one of run, .*, not 'stop'"):
        Gates(**{name: "stop"})
