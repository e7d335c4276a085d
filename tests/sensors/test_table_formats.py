"""For which table formats the sensors wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_hive_opt.local_task.required_keys import required_keys
from airflow_hive_opt.pruning.plan import Plan, plan
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.statement.catalog import JsonCatalog
from airflow_hive_opt.statement.settings import Settings
from tests.pruning.test_lake_formats import CHANGED, JOIN, ORDERS


def planned(provider: str) -> Plan:
    orders = replace(ORDERS, provider=provider, partitioned_by=("day",))
    return plan(JOIN, JsonCatalog.of([orders, CHANGED]), Settings.of())


@pytest.mark.parametrize("provider", ["iceberg", "delta"])
def test_keys_of_a_scan_with_a_client_for_its_format_are_read(provider):
    read = []

    def keys_of(source):
        read.append(source.name)
        return Reason.TOO_MANY_KEYS

    found = required_keys(planned(provider), keys_of)
    assert read == ["changed"]
    assert found.notes == (
        f"the keys of changed are not waited for: {Reason.TOO_MANY_KEYS.sentence}",
    )


def test_a_scan_of_a_hudi_table_is_not_waited_for_and_a_note_says_so():
    """A sensor has no client for Hudi's tables, so it would fail at the first poke."""
    found = required_keys(planned("hudi"), lambda source: pytest.fail(f"reads {source.name}"))
    assert found.scans == ()
    assert found.notes == ("o is not waited for: a sensor can't look up partitions of hudi tables",)
