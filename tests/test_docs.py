"""The docs say what the code says."""

from __future__ import annotations

import re
from inspect import signature
from pathlib import Path

from airflow_hive_opt.get_provider_info import get_provider_info
from airflow_hive_opt.operators.local_task import LocalTaskOperator
from airflow_hive_opt.operators.statement import StatementOperator
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.rewriting import Refusal

PROJECT = Path(__file__).parents[1]


def test_every_reason_is_listed_with_its_sentence():
    text = (PROJECT / "docs" / "reasons.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{reason.value}` | {reason.sentence} |" for reason in Reason]


def test_every_refusal_of_a_rewriting_is_listed_with_its_sentence():
    text = (PROJECT / "docs" / "correlation.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{refusal.value}` | {refusal.sentence} |" for refusal in Refusal]


def test_every_argument_and_option_is_described():
    text = (PROJECT / "docs" / "airflow.md").read_text()
    described = {
        name
        for line in text.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    for operator in (StatementOperator, LocalTaskOperator):
        arguments = set(signature(operator.__init__).parameters) - {"self", "kwargs"}
        assert arguments <= described
    assert set(get_provider_info()["config"]["hive_opt"]["options"]) <= described


def test_links_lead_somewhere():
    readme = (PROJECT / "README.md").read_text()
    for target in (
        "airflow",
        "architecture",
        "planner",
        "correlation",
        "reasons",
        "descriptor",
        "metastore",
        "hive-differences",
        "guarantees",
        "surprises",
        "limits",
        "what-prunes",
        "versions",
    ):
        assert f"(docs/{target}.md)" in readme
        assert (PROJECT / "docs" / f"{target}.md").exists()


def test_every_promise_names_a_test_that_is_there():
    text = (PROJECT / "docs" / "guarantees.md").read_text()
    named = set(re.findall(r"`(tests/[\w/.]+)`", text))
    assert len(named) > 10
    assert [name for name in sorted(named) if not (PROJECT / name).exists()] == []
