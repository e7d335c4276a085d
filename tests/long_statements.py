"""Long statements of several shapes, on a table ``fact`` and a table ``dim``.

``fact`` has the columns ``id`` and ``v`` and the partition column ``p``; ``dim`` has ``k`` and
``w``. Each function makes a statement with so many parts of its shape.
"""

from __future__ import annotations

from collections.abc import Callable

_JOINED = "SELECT f.id FROM fact f JOIN dim d ON f.p = d.k WHERE d.w = 1"


def in_list(parts: int) -> str:
    """An IN list of another column than the partition column."""
    return f"{_JOINED} AND f.id IN ({_numbers(parts)})"


def in_list_of_partitions(parts: int) -> str:
    """An IN list of the partition column."""
    return f"{_JOINED} AND f.p IN ({_numbers(parts)})"


def values(parts: int) -> str:
    """A join with VALUES."""
    rows = ", ".join(f"({number}, 'v{number}')" for number in range(parts))
    return f"SELECT f.id FROM fact f JOIN (VALUES {rows}) AS v (k, name) ON f.p = v.k"


def joins(parts: int) -> str:
    """Joins with one small table, under an alias and with a condition each."""
    each = (f" JOIN dim d{n} ON f.p = d{n}.k AND d{n}.w < {n + 9}" for n in range(parts))
    return f"SELECT f.id FROM fact f{''.join(each)}"


def exists(parts: int) -> str:
    """EXISTS subqueries, joined by AND."""
    each = (
        f"EXISTS (SELECT 1 FROM dim d{n} WHERE d{n}.k = f.p AND d{n}.w < {n + 9})"
        for n in range(parts)
    )
    return f"SELECT f.id FROM fact f WHERE {' AND '.join(each)}"


def nested_in(parts: int) -> str:
    """IN subqueries, one inside the other."""
    inner = "SELECT k FROM dim WHERE w = 1"
    for _ in range(parts - 1):
        inner = f"SELECT k FROM dim WHERE k IN ({inner})"
    return f"SELECT f.id FROM fact f WHERE f.p IN ({inner})"


def parentheses(parts: int) -> str:
    """A condition in nested parentheses."""
    return f"{_JOINED} AND {'(' * parts}f.id = 1{')' * parts}"


def ors(parts: int) -> str:
    """Conditions joined by OR."""
    each = (f"(f.p = {n} AND f.id > {n})" for n in range(parts))
    return f"{_JOINED} AND ({' OR '.join(each)})"


def common_tables(parts: int) -> str:
    """A chain of CTEs, each of which reads the one before."""
    chain = ["c0 AS (SELECT k, w FROM dim WHERE w = 1)"]
    chain += [f"c{n} AS (SELECT k, w FROM c{n - 1} WHERE k > {n})" for n in range(1, parts)]
    last = f"c{parts - 1}"
    return f"WITH {', '.join(chain)} SELECT f.id FROM fact f JOIN {last} ON f.p = {last}.k"


def _numbers(parts: int) -> str:
    return ", ".join(map(str, range(parts)))


SHAPES: dict[str, tuple[Callable[[int], str], int]] = {
    "IN list": (in_list, 10_000),
    "IN list of the partition column": (in_list_of_partitions, 10_000),
    "VALUES": (values, 5_000),
    "joins": (joins, 200),
    "EXISTS": (exists, 200),
    "nested IN": (nested_in, 40),
    "nested parentheses": (parentheses, 5_000),
    "OR": (ors, 3_000),
    "chain of CTEs": (common_tables, 100),
}
"""A function for each shape, and the number of parts of a long statement."""
