"""Each rule does what its fixture file shows.

``python -m tests.rules.test_rules`` writes the outcomes into the files again, or into those whose
names are given. Read each changed outcome before you commit it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import airflow_hive_opt
from airflow_hive_opt.hive.rules import GRAPH_RULES, TASK_RULES
from airflow_hive_opt.pruning.rules import RULES
from airflow_hive_opt.rewriting.rewrite import RULES as REWRITINGS
from tests.rules.cases import Case, files, read, write
from tests.rules.shown import NO_RULES, SHOWN, rule_of

PACKAGE = Path(airflow_hive_opt.__file__).parent
CASES = [
    pytest.param(rule, case, id=f"{rule}: {case.title.splitlines()[0].removeprefix('-- ')}")
    for rule, path in files().items()
    for case in read(path)[1]
]


@pytest.mark.parametrize(("rule", "case"), CASES)
def test_each_rule_changes_the_plan_as_its_fixture_shows(rule: str, case: Case):
    assert SHOWN[rule](case.statement) == case.sections


@pytest.mark.parametrize(("rule", "path"), files().items())
def test_each_rule_has_cases_that_apply_and_cases_that_do_not(rule: str, path: Path):
    cases = read(path)[1]
    assert len(cases) >= 3
    applied = {applies(case) for case in cases}
    assert applied == {True, False}


def applies(case: Case) -> bool:
    """Whether the rule changes the statement or its operators, or finds keys or conditions."""
    after = case.sections["after"]
    if "sql" not in case.sections and re.search(r"^\w+: [A-Z_]+$|^  dropped", after, re.MULTILINE):
        return "PRUNED" in after or "holds" in after
    return not after.startswith(("(unchanged)", "(none)", "(rejected)"))


def test_every_rule_has_a_fixture_file():
    in_tuples = {
        *(f"hive/{rule_of(rule)}" for rule in (*GRAPH_RULES, *TASK_RULES)),
        *(f"pruning/{rule_of(rule)}" for rule in RULES),
        *(f"rewriting/{rule_of(rule)}" for _, rule in REWRITINGS),
    }
    in_folders = {
        f"{optimizer}/{path.stem}"
        for optimizer in ("hive", "pruning")
        for path in (PACKAGE / optimizer / "rules").glob("[!_]*.py")
        if path.stem not in NO_RULES
    }
    assert in_tuples | in_folders <= files().keys()


def test_every_fixture_file_belongs_to_a_rule():
    assert files().keys() == SHOWN.keys()


def regenerate(*rules: str) -> None:
    """Writes the outcomes of the given rules, or of all."""
    for rule, path in files().items():
        if not rules or rule in rules:
            head, cases = read(path)
            write(path, head, [Case(each.title, SHOWN[rule](each.statement)) for each in cases])


if __name__ == "__main__":
    regenerate(*sys.argv[1:])
