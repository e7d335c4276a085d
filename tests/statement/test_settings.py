import re

import pytest

from airflow_hive_opt.statement.settings import (
    PARTITION_PRUNING,
    SMALL_TABLE_FILESIZE,
    UNTESTED,
    Settings,
)


def test_defaults_are_hives():
    settings = Settings.of()
    assert settings.is_on(PARTITION_PRUNING)
    assert settings.number(SMALL_TABLE_FILESIZE) == 25_000_000


def test_values_of_any_type_are_taken():
    settings = Settings.of({PARTITION_PRUNING: False, SMALL_TABLE_FILESIZE: 7})
    assert not settings.is_on(PARTITION_PRUNING)
    assert settings.number(SMALL_TABLE_FILESIZE) == 7
    assert settings.warnings == ()


def test_an_unknown_name_is_warned_of_with_the_nearest():
    (warning,) = Settings.of({"hive.mapjoin.smalltable.filesizes": 1}).warnings
    assert "did you mean hive.mapjoin.smalltable.filesize?" in warning


def test_a_wrong_value_is_warned_of_and_the_default_stays():
    settings = Settings.of({PARTITION_PRUNING: "yes", SMALL_TABLE_FILESIZE: "10 MB"})
    assert settings.is_on(PARTITION_PRUNING)
    assert settings.number(SMALL_TABLE_FILESIZE) == 25_000_000
    assert [warning.split(" must be ")[1].split(",")[0] for warning in settings.warnings] == [
        "true or false",
        "a whole number",
    ]


@pytest.mark.parametrize("value", ["delta", "Delta,HUDI", " hudi , ", ""])
def test_formats_that_are_asked_for(value):
    settings = Settings.for_run({UNTESTED: value})
    assert settings.restricts("delta") is ("delta" in value.lower())
    assert settings.restricts("hudi") is ("hudi" in value.lower())
    assert settings.restricts("iceberg")


@pytest.mark.parametrize("value", ["paimon", "delta;hudi", "true", "delta iceberg"])
def test_an_unknown_format_is_one_clear_line(value):
    known = "delta or hudi, or both separated by a comma"
    expected = f"setting {UNTESTED} must be {known}, not '{value}'"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        Settings.for_run({UNTESTED: value})
    settings = Settings.of({UNTESTED: value})
    assert settings.warnings == (f"{expected}: using none",)
    assert not settings.restricts("delta")
