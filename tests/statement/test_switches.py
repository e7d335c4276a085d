"""The planner's switches: by argument, or by the names that they had as settings."""

from __future__ import annotations

import re
from dataclasses import asdict

import pytest

from airflow_hive_opt.statement.settings import Settings
from airflow_hive_opt.statement.switches import OLD_NAMES, SWITCHES, Switches

OLD_NAMED = ("partition_pruning", "key_predicate", "python_functions", "planning_seconds")
OLD = "hive.optimize.mapjoin.partition.pruning"
CHANGED = Switches(False, True, True, 10)


@pytest.mark.parametrize(
    "given",
    [
        (False, True, True, 10),
        ("False", "true", " TRUE ", "10"),
    ],
    ids=["typed", "text"],
)
def test_switches_may_be_arguments_or_settings_with_their_old_names(given):
    assert Switches.of(dict(zip(SWITCHES, given, strict=True))) == CHANGED
    old = dict(zip(OLD_NAMES.values(), OLD_NAMES, strict=True))
    found = Settings.for_run(
        {old[name]: value for name, value in zip(SWITCHES, given, strict=True) if name in old}
    )
    own, changed = asdict(found.switches), asdict(CHANGED)
    assert {name: own[name] for name in old} == {name: changed[name] for name in old}
    assert [warning.split(" (")[0] for warning in found.warnings] == [
        f"the argument {name} replaces the setting {old}" for old, name in OLD_NAMES.items()
    ]


def test_only_the_switches_that_were_settings_have_old_names():
    """A switch that is added later is an argument only."""
    assert tuple(OLD_NAMES.values()) == OLD_NAMED


@pytest.mark.parametrize("make", [Settings.of, Settings.for_run])
@pytest.mark.parametrize(
    ("conf", "argument", "script", "expected"),
    [
        (None, None, None, True),
        ("false", None, None, False),
        ("false", True, None, True),
        ("true", False, None, False),
        (None, False, "true", True),
        ("true", True, "false", False),
    ],
)
def test_set_lines_override_arguments_and_arguments_override_hive_conf(
    make, conf, argument, script, expected
):
    found = make(
        {OLD.upper(): conf} if conf else {},
        {} if argument is None else {"partition_pruning": argument},
        {OLD: script} if script else {},
    )
    assert found.switches.partition_pruning is expected
    said = f"the argument partition_pruning replaces the setting {OLD} (in effect: "
    told = (f"{said}partition_pruning={expected})",) if conf or script else ()
    assert found.warnings == told


def test_an_old_setting_with_a_wrong_value_is_one_clear_line():
    said = "must be true or false, not 'off'"
    with pytest.raises(ValueError, match=f"^setting {OLD} {re.escape(said)}$"):
        Settings.for_run({OLD: "off"})
    settings = Settings.of({OLD: "off"})
    assert settings.warnings == (f"setting {OLD} {said}",)
    assert settings.switches == Switches()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"planning_seconds": True}, "must be a whole number of at least 0, not True"),
        ({"planning_seconds": 1.5}, "must be a whole number of at least 0, not 1.5"),
        ({"key_predicate": 1}, "must be true or false, not 1"),
        ({"key_predicate": ""}, "must be true or false, not ''"),
        ({"key_predicates": True}, "is none of partition_pruning, key_predicate, "),
    ],
)
def test_a_wrong_value_of_a_switch_is_an_error(given, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        Switches.of(given)
