"""The descriptor's entry for a condition on one column of a scan."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_hive_opt.documents.descriptor import RowFilter, SourceKeys
from airflow_hive_opt.pruning.query import TableRelation


def row_filter_on(
    relation: TableRelation,
    column: str,
    type_: str,
    values: Iterable[object],
    is_range: bool,
    source: SourceKeys,
    guard: str | None = None,
    guarded: tuple[str, ...] = (),
    or_null: bool = False,
) -> RowFilter:
    """The entry for ``relation``; the other arguments are those of :class:`RowFilter`."""
    return RowFilter(
        relation.scan,
        relation.text,
        relation.aliased,
        column,
        type_,
        tuple(map(str, values)),
        is_range,
        source,
        guard,
        guarded,
        or_null,
    )
