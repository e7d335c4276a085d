import pytest

from airflow_hive_opt.statement.settings import SMALL_TABLE_FILESIZE, Settings

MAP_AGGREGATION = "hive.map.aggr"


def test_defaults_are_hives():
    settings = Settings.of()
    assert settings.is_on(MAP_AGGREGATION)
    assert settings.number(SMALL_TABLE_FILESIZE) == 25_000_000


def test_values_of_any_type_are_taken():
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
def test_an_unknown_name_is_warned_of_with_the_nearest(name, near):
    (warning,) = Settings.of({name: 1}).warnings
    assert f"did you mean {near}?" in warning


def test_a_wrong_value_is_warned_of_and_the_default_stays():
    settings = Settings.of({MAP_AGGREGATION: "yes", SMALL_TABLE_FILESIZE: "10 MB"})
    assert settings.is_on(MAP_AGGREGATION)
    assert settings.number(SMALL_TABLE_FILESIZE) == 25_000_000
    assert [warning.split(" must be ")[1].split(",")[0] for warning in settings.warnings] == [
        "true or false",
        "a whole number",
    ]
