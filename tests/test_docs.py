"""The docs say what the code says."""

from __future__ import annotations

from pathlib import Path

from airflow_hive_opt.planner.reasons import Reason
from airflow_hive_opt.planner.rewriting import Refusal

PROJECT = Path(__file__).parents[1]


def test_every_reason_is_listed_with_its_sentence():
    text = (PROJECT / "docs" / "reasons.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{reason.value}` | {reason.sentence} |" for reason in Reason]


def test_every_refusal_of_a_rewriting_is_listed_with_its_sentence():
    text = (PROJECT / "docs" / "correlation.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{refusal.value}` | {refusal.sentence} |" for refusal in Refusal]


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
        "surprises",
    ):
        assert f"(docs/{target}.md)" in readme
        assert (PROJECT / "docs" / f"{target}.md").exists()
