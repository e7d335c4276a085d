"""Hive's settings: defaults, values and warnings."""

import pytest

from airflow_hive_opt.statement.settings import SMALL_TABLE_FILESIZE, Settings

MAP_AGGREGATION = "hive.map.aggr"


def test_defaults_are_hives():
    settings = Settings.of()
    assert settings.is_on(MAP_AGGREGATION)
    assert settings.number(SMALL_TABLE_FILESIZE) == 25_000_000


def test_setting_values_may_be_of_any_type():
    settings = Settings.of({MAP_AGGREGATION: False, SMALL_TABLE_FILESIZE: 7})
    assert not settings.is_on(MAP_AGGREGATION)
    assert settings.number(SMALL_TABLE_FILESIZE) == 7
    assert settings.warnings == ()


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("hive.mapjoin.smalltable.filesizes", "hive.mapjoin.smalltable.filesize"),
        ("hive.optimize.mapjoin.key.predicates", "hive.optimize.mapjoin.key.predicate"),
    ],
)
def test_the_warning_about_an_unknown_setting_suggests_the_nearest(name, near):
    (warning,) = Settings.of({name: 1}).warnings
    assert f"did you mean {near}?" in warning


def test_a_wrong_setting_value_warns_and_keeps_the_default():
    settings = Settings.of({MAP_AGGREGATION: "yes", SMALL_TABLE_FILESIZE: "10 MB"})
    assert settings.is_on(MAP_AGGREGATION)
    assert settings.number(SMALL_TABLE_FILESIZE) == 25_000_000
    assert [warning.split(" must be ")[1].split(",")[0] for warning in settings.warnings] == [
        "true or false",
        "a whole number",
    ]
