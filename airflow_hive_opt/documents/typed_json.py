"""Converts JSON values to the types of data classes and refuses values of other types.

A type may be a data class, ``str``, ``int``, ``float``, ``bool``, an enumeration, ``Any``,
``tuple[X, ...]``, ``tuple[X, Y]``, ``Mapping[str, X]``, ``dict[str, X]``, or a union of one of
these and ``None``.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

Reader = Callable[[Any], Any]
NoneType = type(None)
_UNIONS = (Union, getattr(types, "UnionType", Union))  # Python 3.9 has no ``X | Y``

_WORDS = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    NoneType: "null",
    dict: "an object",
    list: "a list",
}


class WrongTypeError(ValueError):
    """A value has the wrong type; ``place`` is the path to it, innermost part first."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.place: list[str] = []

    def __str__(self) -> str:
        place = "".join(reversed(self.place)).removeprefix(".")
        return f"{place or 'the document'} {self.args[0]}"


@cache
def reader(type_: Any) -> Reader:
    """A function that converts a value from ``json.loads`` to ``type_``.

    The returned function raises :class:`WrongTypeError` for a value of another type. ``reader``
    itself raises ``TypeError`` for a type that is not supported.

    >>> reader(tuple[int | None, ...])([1, None])
    (1, None)
    >>> reader(Mapping[str, int])({"a": [1]})
    Traceback (most recent call last):
    airflow_hive_opt.documents.typed_json.WrongTypeError: ['a'] must be an integer, not a list
    """
    if type_ is Any:
        return lambda value: value
    if allowed := _scalars(type_):
        return _scalar(allowed)
    origin, arguments = get_origin(type_), get_args(type_)
    if origin in _UNIONS:
        return _optional(*arguments)
    if origin is tuple:
        return _list_of(arguments[0]) if arguments[1:] == (...,) else _fixed(arguments)
    if origin in (dict, Mapping) and arguments[0] is str:
        return _mapping(arguments[1])
    if isinstance(type_, type) and issubclass(type_, Enum):
        return _enumeration(type_)
    if dataclasses.is_dataclass(type_):
        return _data_class(type_)
    raise TypeError(f"there is no reader for {type_}")


def _scalars(type_: Any) -> frozenset[type]:
    """The exact Python types that a scalar type or a union of scalars allows; none for others.

    A float may be an integer in JSON, but an integer may not be a boolean.
    """
    members = get_args(type_) if get_origin(type_) in _UNIONS else (type_,)
    if not {str, int, float, bool, NoneType}.issuperset(members):
        return frozenset()
    return frozenset({*members, int} if float in members else members)


def _scalar(allowed: frozenset[type]) -> Reader:
    def read(value: Any) -> Any:
        if type(value) not in allowed:
            raise _wrong(value, *allowed)
        return value

    return read


def _optional(*members: Any) -> Reader:
    others = [member for member in members if member is not NoneType]
    if len(others) != 1:
        raise TypeError(f"there is no reader for a choice of {members}")
    inner = reader(others[0])
    return lambda value: None if value is None else inner(value)


def _list_of(member: Any) -> Reader:
    allowed, inner = _scalars(member), reader(member)

    def read(value: Any) -> Any:
        if type(value) is not list:
            raise _wrong(value, list)
        if allowed and allowed.issuperset(map(type, value)):  # avoids a call for each value
            return tuple(value)
        return tuple(_inside("[{}]", at, inner, each) for at, each in enumerate(value))

    return read


def _fixed(members: Sequence[Any]) -> Reader:
    inners = [reader(member) for member in members]

    def read(value: Any) -> Any:
        if type(value) is not list:
            raise _wrong(value, list)
        if len(value) != len(inners):
            raise WrongTypeError(f"must have {len(inners)} members, not {len(value)}")
        return tuple(_inside("[{}]", at, inners[at], each) for at, each in enumerate(value))

    return read


def _mapping(member: Any) -> Reader:
    inner = reader(member)

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise _wrong(value, dict)
        return {name: _inside("[{!a}]", name[:50], inner, each) for name, each in value.items()}

    return read


def _inside(form: str, part: object, inner: Reader, value: Any) -> Any:
    """Reads a part of a value; ``form`` shows where it is if its type is wrong."""
    try:
        return inner(value)
    except WrongTypeError as error:
        error.place.append(form.format(part))
        raise


def _enumeration(type_: type[Enum]) -> Reader:
    members = {member.value: member for member in type_}

    def read(value: Any) -> Any:
        if type(value) is not str or value not in members:
            raise WrongTypeError(f"must be one of {', '.join(members)}")
        return members[value]

    return read


def _data_class(type_: Any) -> Reader:
    hints = get_type_hints(type_)
    inners = [(field.name, reader(hints[field.name])) for field in dataclasses.fields(type_)]
    names = {name for name, _ in inners}

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise _wrong(value, dict)
        if value.keys() != names:
            raise WrongTypeError(_other_names(names, value))
        found = [_inside(".{}", name, inner, value[name]) for name, inner in inners]
        try:
            return type_(*found)
        except (TypeError, ValueError) as error:  # raised by the class's own check
            raise WrongTypeError(f"is wrong: {error}") from error

    return read


def _other_names(names: set[str], value: Mapping[str, Any]) -> str:
    if missing := names - value.keys():
        return f"has no field {', '.join(sorted(missing))}"
    unknown = sorted(value.keys() - names)
    return f"has a field that it must not have: {unknown[0][:50]!a}"


def _wrong(value: Any, *allowed: type) -> WrongTypeError:
    wanted = " or ".join(sorted(_WORDS[each] for each in allowed))
    return WrongTypeError(f"must be {wanted}, not {_WORDS.get(type(value), 'that')}")
