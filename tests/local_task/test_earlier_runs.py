"""Which keys of an earlier run are the same keys."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_hive_opt.local_task.earlier_runs import digest_of, digest_of_hop
from airflow_hive_opt.pruning.decisions import ScanDecision
from airflow_hive_opt.pruning.hops import hops
from airflow_hive_opt.pruning.plan import plan
from airflow_hive_opt.pruning.query import NarrowedTable
from airflow_hive_opt.statement.settings import Settings
from tests.pruning.test_hops import CATALOG, JOIN, PART

OWN = f"{JOIN} AND s.day IN (SELECT e.day FROM l.s.days e)"


def hop(sql: str = JOIN, part: str = PART, version: str = "VERSION AS OF 1") -> ScanDecision:
    planned = plan(sql, CATALOG)
    scan = next(each.scan for each in planned.decisions if each.scan.alias == "r")
    (found,) = hops(planned, [NarrowedTable(scan, part, version)], Settings.of())
    return found


def test_the_same_keys_have_the_same_digest_wherever_they_are_in_the_text():
    expected = digest_of_hop(hop(), {})
    assert digest_of_hop(hop(JOIN.replace("SELECT s.v", "SELECT s.v, s.v + 1")), {}) == expected


def test_a_snapshot_does_not_matter_but_what_the_part_is_does():
    expected = digest_of_hop(hop(), {})
    assert digest_of_hop(hop(version="VERSION AS OF 2"), {}) == expected
    assert digest_of_hop(hop(part="`r`.`day` IN (DATE'2024-01-02')"), {}) != expected


@pytest.mark.parametrize(
    "sql",
    [
        JOIN.replace("d.week = 3", "d.week = 3 AND r.v = 4"),
        JOIN.replace("s.ticket = r.ticket", "s.ticket = r.ticket AND s.cart = r.cart"),
        JOIN.replace("s.ticket = r.ticket", "s.cart = r.ticket"),
    ],
)
def test_other_keys_have_another_digest(sql):
    assert digest_of_hop(hop(sql), {}) != digest_of_hop(hop(), {})


def test_parameters_matter():
    assert digest_of_hop(hop(), {"week": 1}) != digest_of_hop(hop(), {"week": 2})


def test_keys_of_a_hop_are_not_the_scans_own_keys():
    own = next(each for each in plan(OWN, CATALOG).decisions if each.scan.alias == "s")
    assert own.pruned
    assert digest_of(own, {}) != digest_of_hop(hop(OWN), {})
    same = replace(own, alternatives=hop(OWN).alternatives)
    assert digest_of(same, {}) != digest_of_hop(same, {})
