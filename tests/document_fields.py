"""The fields of documents: their data classes, and the tables of the page on the descriptor."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, get_args, get_origin, get_type_hints

from airflow_hive_opt.documents import (
    claims,
    descriptor,
    job,
    key_set,
    report,
    required,
    required_keys,
)
from airflow_hive_opt.documents.format import Format
from airflow_hive_opt.documents.typed_json import _UNIONS, NoneType
from airflow_hive_opt.key_index import manifest

FORMATS: tuple[Format[Any], ...] = (
    descriptor._FORMAT,
    required._FORMAT,
    required_keys._FORMAT,
    key_set._FORMAT,
    job._JOB,
    job._OUTCOME,
    claims._CLAIM,
    claims._BEGUN,
    report._FORMAT,
    manifest._FORMAT,
)
_WORDS = {str: "string", int: "integer", float: "number", bool: "boolean", Any: "any"}
_ROW = re.compile(r"\| `(\w+)` \| (.+?) \| .+ \|")

Fields = dict[str, list[tuple[str, str]]]
"""By the name of a document or a data class: its fields in order, each with its type in words."""


def fields_of_classes(formats: Sequence[Format[Any]] = FORMATS) -> Fields:
    """The fields of all documents and of the data classes in them."""
    found: Fields = {}

    def add(name: str, type_: Any) -> None:
        if name in found:
            return
        hints = get_type_hints(type_)
        found[name] = [(each.name, _words(hints[each.name])) for each in dataclasses.fields(type_)]
        for hint in hints.values():
            for inner in filter(dataclasses.is_dataclass, _inside(hint)):
                add(_name(inner), inner)

    for each in formats:
        add(each.kind.capitalize(), each.content)
    return found


def fields_of_page(page: str) -> Fields:
    """The tables of fields with a type column, by the heading above each."""
    found: Fields = {}
    for section in re.split(r"^#+ ", page, flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        _, begin, table = text.partition("| field | type | meaning |\n|---|---|---|\n")
        if begin:
            rows = table.partition("\n\n")[0].splitlines()
            found[heading] = [
                row.groups() if (row := _ROW.fullmatch(line)) else (line, "") for line in rows
            ]
    return found


def _inside(hint: Any) -> list[Any]:
    """The type and all types that it is made of."""
    return [hint, *(each for inner in get_args(hint) for each in _inside(inner))]


def _name(type_: type) -> str:
    return type_.__name__.lstrip("_")


def _words(hint: Any) -> str:
    """A type of :mod:`~airflow_hive_opt.documents.typed_json`, as the page calls it."""
    if hint in _WORDS:
        return _WORDS[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in _UNIONS:
        members = [_words(each) for each in arguments if each is not NoneType]
        return " or ".join([*members, "null"] if NoneType in arguments else members)
    if origin is tuple and arguments[1:] == (...,):
        return f"list of {_member(arguments[0])}"
    if origin is tuple:
        return f"[{', '.join(map(_words, arguments))}]"
    if origin in (dict, Mapping):
        return f"object of {_member(arguments[1])}"
    if issubclass(hint, Enum):
        *others, last = (f"`{member.value}`" for member in hint)
        return f"{', '.join(others)} or {last}"
    return f"[{_name(hint)}](#{_name(hint).lower()})"


def _member(hint: Any) -> str:
    return f"({_words(hint)})" if get_origin(hint) in _UNIONS else _words(hint)
