"""The partitions and keys of a scan as one condition, which each engine writes in its way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TypeAlias

from airflow_hive_opt.documents.descriptor import RowFilter
from airflow_hive_opt.engines.scan import EngineError, PrunedScan
from airflow_hive_opt.engines.values import Value, filter_values, texts_read
from airflow_hive_opt.statement.types import TIMESTAMP


@dataclass(frozen=True)
class IsIn:
    """A column of a Hive type has one of the values, or is NULL if ``null``."""

    column: str
    type: str
    values: tuple[Value, ...]
    null: bool = False


@dataclass(frozen=True)
class IsBetween:
    """A column of a Hive type is not below ``low`` and not above ``high``."""

    column: str
    type: str
    low: Value
    high: Value


@dataclass(frozen=True)
class And:
    """All of the parts, of which there is at least one."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Or:
    """One of the parts; always false without parts."""

    parts: tuple[Condition, ...]


Condition: TypeAlias = "IsIn | IsBetween | And | Or"
NEVER = Or(())


def condition_of(scan: PrunedScan) -> Condition:
    """The condition that is true for every row that the statement needs, and for few others.

    A TIMESTAMP of a partition is a wall clock, as engines read the names of folders; that of a
    table with its own list of files is an instant. Raises
    :class:`~airflow_hive_opt.engines.scan.EngineError`.
    """
    parts: list[Condition] = []
    if scan.partitions is not None:
        rows = {
            tuple(texts_read(scan, scan.pruned_columns, partition)) for partition in scan.partitions
        }
        types = dict(zip(scan.columns, scan.types, strict=True))
        columns = [(name, types[name]) for name in scan.pruned_columns]
        parts.append(_of_rows(columns, sorted(rows, key=repr)))
    alternatives = [_of_filters(scan, filters) for filters in scan.alternatives]
    if alternatives and all(alternatives):
        parts.append(_any([_all(found) for found in alternatives]))
    if not parts:
        raise EngineError(f"{scan.table} has no condition that an engine compares as Spark does")
    return _all(parts)


def with_columns(condition: Condition, named: Callable[[str], str]) -> Condition:
    """The condition with the columns' names as a table writes them."""
    if isinstance(condition, (And, Or)):
        return replace(
            condition, parts=tuple(with_columns(each, named) for each in condition.parts)
        )
    return replace(condition, column=named(condition.column))


def may_be_null(condition: Condition) -> bool:
    """Whether the condition is true for a NULL of one of its columns."""
    return any(isinstance(found, IsIn) and found.null for found in _leaves(condition))


def _of_rows(
    columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[Value | None]]
) -> Condition:
    """True for the tuples; leading columns are grouped."""
    if len(columns) == 1:
        values = [row[0] for row in rows]
        found = tuple(value for value in values if value is not None)
        return IsIn(*columns[0], found, len(found) < len(values)) if values else NEVER
    groups: dict[Value | None, list[Sequence[Value | None]]] = {}
    for row in rows:
        groups.setdefault(row[0], []).append(row[1:])
    return _any(
        [
            _all([_of_rows(columns[:1], [(first,)]), _of_rows(columns[1:], rest)])
            for first, rest in groups.items()
        ]
    )


def _of_filters(scan: PrunedScan, filters: Sequence[RowFilter]) -> list[Condition]:
    """The conditions on data columns.

    Engines read the TIMESTAMPs of Parquet files in different ways, so only tables that keep their
    own list of files, and say what a TIMESTAMP is, have conditions on them.
    """
    found: list[Condition] = []
    for each in filters:
        if each.type == TIMESTAMP and not scan.lists_files:
            continue
        values = filter_values(scan, each)
        if each.is_range:
            ends = zip(values[::2], values[1::2], strict=True)
            found.append(_any([IsBetween(each.column, each.type, low, high) for low, high in ends]))
        else:
            found.append(IsIn(each.column, each.type, tuple(values)) if values else NEVER)
    return found


def _all(parts: Sequence[Condition]) -> Condition:
    if NEVER in parts:
        return NEVER
    flat = [each for part in parts for each in (part.parts if isinstance(part, And) else (part,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def _any(parts: Sequence[Condition]) -> Condition:
    possible = tuple(part for part in parts if part != NEVER)
    return possible[0] if len(possible) == 1 else Or(possible)


def check_types(
    scan: PrunedScan,
    condition: Condition,
    stored: Callable[[str], str],
    classes: Mapping[str, type],
) -> None:
    """Raises :class:`EngineError` if a column of the table has another type than its keys.

    ``stored`` is a column's type as the table names it, ``classes`` the values of such types.
    """
    for found in _leaves(condition):
        name = stored(found.column).replace(" ", "")
        values = (found.low, found.high) if isinstance(found, IsBetween) else found.values
        right = classes.get(name.partition("(")[0])
        if any(type(value) is not right for value in values) or (
            right is Decimal and name != found.type.replace(" ", "")
        ):
            raise EngineError(
                f"the keys of {scan.table} are refused: its column {found.column} is a {name}, and "
                f"the keys were of type {found.type}"
            )


def _leaves(condition: Condition) -> Iterator[IsIn | IsBetween]:
    if isinstance(condition, (And, Or)):
        for part in condition.parts:
            yield from _leaves(part)
    else:
        yield condition
