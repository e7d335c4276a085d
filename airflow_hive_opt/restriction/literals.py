"""SQL from values: literals, and conditions that hold for a list of partitions and no others."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import date

from airflow_hive_opt.metastores.partitions import CastText, Value
from airflow_hive_opt.statement.identifiers import quote

# No quote, no escape, and nothing that Spark would read as a ${variable}.
_PLAIN = re.compile(r"[\w .:/=+%,@-]*")
_LONGEST_BOUND = 60  # characters of a text that limits a range; a filter may have few


def literal(value: Value | None) -> str:
    r"""A Spark SQL literal.

    A text that is not plain is written in hexadecimal, so the session's escape rules do not matter.

    >>> print(literal("a b"), literal(3), literal(date(2020, 1, 31)))
    'a b' 3 DATE'2020-01-31'
    >>> literal("it's")
    "CAST(X'69742773' AS STRING)"
    """
    if isinstance(value, str):
        if not is_plain(value):
            return f"CAST(X'{value.encode().hex()}' AS STRING)"
        return f"'{value}'"
    if isinstance(value, date):
        return f"DATE'{value.isoformat()}'"
    if isinstance(value, CastText):
        return f"CAST({literal(value.text)} AS {value.type})"
    return str(value)


def is_plain(value: Value | None) -> bool:
    """Whether the value needs no escape in SQL and in the metastore's filter language."""
    return not isinstance(value, str) or _PLAIN.fullmatch(value) is not None


def tuples_condition(
    alias: str, columns: Sequence[str], tuples: Iterable[Sequence[Value | None]]
) -> str:
    """A condition that is true for exactly the given tuples of columns, false if there are none.

    Leading columns are grouped, ``(a = 1 AND b IN (2, 3)) OR ...``: Spark passes this form to the
    metastore as a whole. The metastore's filter language has no escape for quotes and backslashes,
    so a text value with these is compared in a form that Spark does not pass on. Without an
    ``alias``, the names of the columns are bare.

    >>> tuples_condition("s", ["ds"], [("b",), ("a",)])
    "`s`.`ds` IN ('a', 'b')"
    >>> tuples_condition("s", ["a", "b"], [(1, 2), (1, 3), (4, 2)])
    '(`s`.`a` = 1 AND `s`.`b` IN (2, 3)) OR (`s`.`a` = 4 AND `s`.`b` IN (2))'
    >>> tuples_condition("s", ["ds"], [("a",), (None,)])
    "`s`.`ds` IN ('a') OR `s`.`ds` IS NULL"
    >>> tuples_condition("s", ["ds"], [])
    '1 = 0'
    """
    rows = sorted(set(map(tuple, tuples)), key=repr)
    if not rows:
        return "1 = 0"
    name = _qualified(alias, columns[0])
    if len(columns) == 1:
        values = [row[0] for row in rows if row[0] is not None]
        plain = [literal(value) for value in values if is_plain(value)]
        parts = [f"{name} IN ({', '.join(plain)})"] if plain else []
        hidden = [literal(value) for value in values if not is_plain(value)]
        if hidden:
            parts.append(f"concat({name}, '') IN ({', '.join(hidden)})")
        if len(values) < len(rows):
            parts.append(f"{name} IS NULL")
        return " OR ".join(parts)
    groups: dict[Value | None, list[Sequence[Value | None]]] = {}
    for row in rows:
        groups.setdefault(row[0], []).append(row[1:])
    return " OR ".join(
        f"({_equals(name, first)} AND {_nested(alias, columns[1:], rest)})"
        for first, rest in groups.items()
    )


def range_condition(
    alias: str, columns: Sequence[str], rows: Collection[Sequence[Value | None]]
) -> str | None:
    """A range of values that contains all tuples, for each column that has one; else ``None``.

    Spark passes it to the metastore. A column with a NULL has none, nor has a text that is not
    plain, or one that UTF-8 and UTF-16 sort differently.

    >>> range_condition("s", ["ds", "n"], [("b", 3), ("a", 3)])
    "`s`.`ds` >= 'a' AND `s`.`ds` <= 'b' AND `s`.`n` = 3"
    >>> range_condition("s", ["ds"], [("a",), (None,)]) is None
    True
    """
    parts = []
    for at, column in enumerate(columns):
        values = [row[at] for row in rows]
        if not values or not all(map(_is_sortable, values)):
            continue
        name = _qualified(alias, column)
        low, high = min(values), max(values)  # type: ignore[type-var]
        if low == high:
            parts.append(f"{name} = {literal(low)}")
        else:
            parts += [f"{name} >= {literal(low)}", f"{name} <= {literal(high)}"]
    return " AND ".join(parts) or None


def _is_sortable(value: Value | None) -> bool:
    if isinstance(value, str):
        return (
            is_plain(value) and len(value) <= _LONGEST_BOUND and max(value, default="") < "\ud800"
        )
    return isinstance(value, (int, date))


def names_condition(
    alias: str, columns: Sequence[str], tuples: Iterable[Sequence[Value | None]]
) -> str:
    """Like :func:`tuples_condition`, in a form that Spark can't pass to the metastore.

    It is one lookup in a set of texts, however many tuples there are. It may also hold for another
    tuple if values contain slashes; the statement's own condition then excludes it. Values without
    a single text form are compared as they are: Spark does not pass these on either.

    >>> names_condition("s", ["a", "b"], [("x", 2), ("x", None), ("it's", 3)])  # doctest: +ELLIPSIS
    "concat(`s`.`a`, '/', `s`.`b`) IN (CAST(X'...' AS STRING), 'x/2') OR (`s`.`a` = 'x' AND ...)"
    """
    rows = set(map(tuple, tuples))
    texts = sorted("/".join(map(_text, row)) for row in rows if all(map(_has_text, row)))
    others = [row for row in rows if not all(map(_has_text, row))]
    parts = []
    if texts:
        names = [_qualified(alias, column) for column in columns]
        whole = ", '/', ".join(names) if len(names) > 1 else f"{names[0]}, ''"
        parts.append(f"concat({whole}) IN ({', '.join(map(literal, texts))})")
    if others or not parts:
        parts.append(tuples_condition(alias, columns, others))
    return " OR ".join(parts)


def _qualified(alias: str, column: str) -> str:
    return f"{quote(alias)}.{quote(column)}" if alias else quote(column)


def _has_text(value: Value | None) -> bool:
    return value is not None and not isinstance(value, CastText)


def _text(value: Value | None) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


def _equals(name: str, value: Value | None) -> str:
    if value is None:
        return f"{name} IS NULL"
    return (
        f"{name} = {literal(value)}"
        if is_plain(value)
        else f"concat({name}, '') = {literal(value)}"
    )


def _nested(alias: str, columns: Sequence[str], rows: Iterable[Sequence[Value | None]]) -> str:
    condition = tuples_condition(alias, columns, rows)
    return f"({condition})" if " OR " in condition else condition
