"""Replaces parts of a statement's text; the rest stays the user's text.

>>> spliced("SELECT a FROM t", [Edit(Span(7, 8), "b"), Edit(Span(15, 15), " WHERE b > 1")])
'SELECT b FROM t WHERE b > 1'
"""

from __future__ import annotations

from dataclasses import dataclass

from airflow_hive_opt.statement.parse import Span


@dataclass(frozen=True)
class Edit:
    """The replacement of a span by ``text``.

    An edit inside the span of another edit is not applied: the text of the outer one includes it.
    An empty span inserts the text before an edit that starts there.
    """

    span: Span
    text: str


def spliced(sql: str, edits: list[Edit], within: Span | None = None) -> str:
    """The text of ``within``, or all of ``sql``, with the outermost edits applied."""
    start, stop = (within.start, within.stop) if within else (0, len(sql))
    inside = [edit for edit in edits if start <= edit.span.start and edit.span.stop <= stop]
    parts = []
    for edit in sorted(inside, key=_order):
        if edit.span.start < start:
            continue
        parts += [sql[start : edit.span.start], edit.text]
        start = edit.span.stop
    return "".join([*parts, sql[start:stop]])


def _order(edit: Edit) -> tuple[int, bool, int]:
    start, stop = edit.span.start, edit.span.stop
    return start, start < stop, -stop
