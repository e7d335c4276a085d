"""Compares the planner with Hive's own answers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCORE = Path(__file__).parent / "goldens" / "score.py"


@pytest.fixture(scope="module")
def score() -> ModuleType:
    spec = importlib.util.spec_from_file_location("score", SCORE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("cases.jsonl.gz", 1.0),
        ("more.jsonl.gz", 0.985),
        ("subqueries.jsonl.gz", 1.0),
        ("bucket_files.jsonl.gz", 1.0),
    ],
)
def test_the_planner_agrees_with_hives_recorded_answers(score: ModuleType, name: str, least: float):
    assert score.main(name) >= least
