"""Where the scans of a run stand in the user's statement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from sqlglot import exp

from airflow_hive_opt.pages.models import Place
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.parse import Span, identifier_span, parse
from airflow_hive_opt.statement.script import split_settings


def places_of(script: str, aliases: Sequence[str]) -> list[Place | None]:
    r"""The places of the table references with these aliases; ``None`` for those not found.

    >>> places_of("SET a=b;\nSELECT 1 FROM f, d", ["d", "x"])[0].column
    18
    """
    try:
        tree: exp.Expr = parse(split_settings(script)[1])
    except (PlanError, ValueError, RecursionError):
        return [None] * len(aliases)
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    written = tree.find(exp.Insert, exp.Create)
    target = written and written.this.find(exp.Table)  # is not read
    for table in tree.find_all(exp.Table):
        if table is not target and (span := _span(table)) is not None:
            found[table.alias_or_name.lower()].append((span.start, span.stop))
    for spans in found.values():
        spans.sort(reverse=True)
    return [_next(script, found[alias.lower()]) for alias in aliases]


def place_at(script: str, start: int, stop: int) -> Place:
    """The place of some characters of the script."""
    above = script[:start]
    return Place(
        start=start,
        stop=stop,
        line=above.count("\n") + 1,
        column=start - (above.rfind("\n") + 1) + 1,
    )


def _next(script: str, spans: list[tuple[int, int]]) -> Place | None:
    return place_at(script, *spans.pop()) if spans else None


def _span(table: exp.Table) -> Span | None:
    """The characters of a table's name with its database."""
    parts = [part for part in table.parts if isinstance(part, exp.Identifier)]
    if not parts or len(parts) < len(table.parts):
        return None
    return Span(identifier_span(parts[0]).start, identifier_span(parts[-1]).stop)
