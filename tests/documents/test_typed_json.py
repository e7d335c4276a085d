"""JSON values are converted to the types of data classes, or refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from airflow_hive_opt.documents.typed_json import WrongTypeError, reader
from airflow_hive_opt.statement.text_enum import StrEnum


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    number: int | None
    names: tuple[str, ...] = ()

    def __post_init__(self):
        if self.number == 7:
            raise ValueError("7 is unlucky")


@dataclass(frozen=True)
class Outer:
    inner: Inner
    maybe: Inner | None
    pair: tuple[int, str]
    texts: Mapping[str, str]
    more: dict[str, str | None]
    many: tuple[Inner, ...]
    colour: Colour
    share: float
    free: Any


GIVEN = {
    "inner": {"number": 1, "names": ["a"]},
    "maybe": None,
    "pair": [1, "x"],
    "texts": {"a": "b"},
    "more": {"a": None, "b": "c"},
    "many": [{"number": None, "names": []}],
    "colour": "red",
    "share": 1,
    "free": {"any": [1, "thing"]},
}


def test_json_values_of_the_right_types_are_read():
    assert reader(Outer)(GIVEN) == Outer(
        inner=Inner(1, ("a",)),
        maybe=None,
        pair=(1, "x"),
        texts={"a": "b"},
        more={"a": None, "b": "c"},
        many=(Inner(None),),
        colour=Colour.RED,
        share=1,
        free={"any": [1, "thing"]},
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inner": None}, "inner must be an object, not null"),
        ({"inner": {"number": 1}}, "inner has no field names"),
        ({"inner": {"number": 1, "names": [], "x\ud800": 1}}, r"must not have: 'x\\ud800'"),
        ({"inner": {"number": 1.0, "names": []}}, "inner.number must be an integer or null, not a"),
        ({"inner": {"number": True, "names": []}}, "inner.number must be an integer or null"),
        ({"inner": {"number": 7, "names": []}}, "inner is wrong: 7 is unlucky"),
        ({"inner": {"number": 1, "names": "a"}}, "inner.names must be a list, not a string"),
        ({"inner": {"number": 1, "names": ["a", 1]}}, r"inner.names\[1\] must be a string"),
        ({"maybe": []}, "maybe must be an object, not a list"),
        ({"pair": [1]}, "pair must have 2 members, not 1"),
        ({"pair": ["x", 1]}, r"pair\[0\] must be an integer"),
        ({"texts": {"a": None}}, r"texts\['a'\] must be a string, not null"),
        ({"texts": []}, "texts must be an object"),
        ({"more": {"b": 1}}, r"more\['b'\] must be a string or null|null or a string"),
        ({"many": [GIVEN["many"][0], {}]}, r"many\[1\] has no field names, number"),
        ({"colour": "blue"}, "colour must be one of red"),
        ({"colour": []}, "colour must be one of red"),
        ({"share": "1"}, "share must be a number|an integer"),
        ({"share": True}, "not true or false"),
    ],
)
def test_json_values_of_a_wrong_type_are_an_error(change, message):
    with pytest.raises(WrongTypeError, match=message):
        reader(Outer)({**GIVEN, **change})


@pytest.mark.parametrize("type_", [set, int | Inner, Inner | Outer, Mapping[int, str]])
def test_a_type_without_a_reader_is_an_error(type_):
    with pytest.raises(TypeError, match="there is no reader"):
        reader(type_)
