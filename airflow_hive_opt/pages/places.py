"""Where the scans of a run stand in the user's statement."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from sqlglot import exp

from airflow_hive_opt.pages.models import Place
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.parse import name_span, parse
from airflow_hive_opt.statement.script import split_settings

Reference = tuple[int, int]


def places_of(script: str, scans: Sequence[tuple[str, Reference | None]]) -> list[Place | None]:
    r"""Where each scan stands in the script; ``None`` if it is not found.

    A scan is an alias and, if known, its (start, stop) in the script. If that is not known, or no
    table is there, the alias decides, provided it occurs once in the script and once among the
    scans.

    >>> script = "SET a=b;\nSELECT 1 FROM f, d, f"
    >>> [place and place.column for place in places_of(script, [("f", (29, 30)), ("d", None)])]
    [21, 18]
    >>> places_of(script, [("f", None), ("f", (0, 1)), ("x", None)])
    [None, None, None]
    """
    try:
        tree: exp.Expr = parse(split_settings(script)[1])
    except (PlanError, ValueError, RecursionError):
        return [None] * len(scans)
    found: dict[str, list[Reference]] = defaultdict(list)
    written = tree.find(exp.Insert, exp.Create)
    target = written and written.this.find(exp.Table)  # is not read
    for table in tree.find_all(exp.Table):
        if table is not target and (span := name_span(table)) is not None:
            found[table.alias_or_name.lower()].append((span.start, span.stop))
    repeated = Counter(alias for alias, _ in scans)
    places: list[Place | None] = []
    for alias, reference in scans:
        named = found[alias]
        only = named if len(named) == repeated[alias] == 1 else []
        at = reference if reference in named else next(iter(only), None)
        places.append(place_at(script, *at) if at else None)
    return places


def place_at(script: str, start: int, stop: int) -> Place:
    """Line and column of the characters from ``start`` to ``stop``."""
    above = script[:start]
    return Place(
        start=start,
        stop=stop,
        line=above.count("\n") + 1,
        column=start - (above.rfind("\n") + 1) + 1,
    )
