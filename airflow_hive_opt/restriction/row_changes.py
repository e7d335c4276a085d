"""Puts conditions on the target of MERGE, UPDATE and DELETE into the statement's own condition.

The condition of the statement implies them, so it stays true for the same rows. MERGE inserts a row
of its source that matches no row of the target. If the source changed after its keys were read, a
new key could therefore insert a row twice. So the clauses that insert get a condition that fails
the statement in this case, before anything is written. Without such a clause, the source gets it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_hive_opt.documents.descriptor import Changes, RowFilter
from airflow_hive_opt.metastores.partitions import typed
from airflow_hive_opt.restriction.literals import literal
from airflow_hive_opt.statement.edits import Edit
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.parse import Span
from airflow_hive_opt.statement.types import TIMESTAMP

# None has a meaning in a regular expression.
_SEPARATORS = (",", ";", "~", "#", "@", "%")
SOURCE_CHANGED = "airflow_hive_opt: the source has keys that it did not have when they were read"


def values_condition(column: str, found: RowFilter) -> str:
    """A condition that is true if ``column`` has one of the values, or is in one of the ranges.

    It is also true for NULL if the filter says so.
    """
    null = f"{column} IS NULL"
    if not found.values:
        return null if found.or_null else "1 = 0"
    condition = _values_condition(column, found)
    return f"{null} OR {condition}" if found.or_null else condition


def _values_condition(column: str, found: RowFilter) -> str:
    values = [_literal(text, found.type) for text in found.values]
    if not found.is_range:
        return f"{column} IN ({', '.join(values)})"
    ranges = zip(values[::2], values[1::2])
    return " OR ".join(f"{column} BETWEEN {low} AND {high}" for low, high in ranges)


def _literal(text: str, type_: str) -> str:
    """A value as SQL; a timestamp is written in microseconds, whatever the time zone."""
    return f"timestamp_micros({text})" if type_ == TIMESTAMP else literal(typed(text, type_))


def change_edits(changes: Changes, filters: Sequence[RowFilter]) -> Iterator[Edit]:
    """The edits for ``filters``, which are all of the statement's target."""
    start, stop = changes.condition
    conditions = (
        values_condition(f"{quote(found.scan.alias)}.{quote(found.column)}", found)
        for found in filters
        if not found.guards_only
    )
    added = "".join(f" AND ({condition})" for condition in conditions)
    yield Edit(Span(start, start), "(")
    yield Edit(Span(stop, stop), f"){added}")
    guard = " AND ".join(_guard(found) for found in filters if found.guard is not None)
    if not guard:
        return
    for clause in changes.inserts:
        if clause.condition is None:
            yield Edit(Span(clause.at, clause.at), f" AND {guard}")
        else:
            start, stop = clause.condition
            yield Edit(Span(clause.at, start), f" AND {guard} AND (")
            yield Edit(Span(stop, stop), ")")
    if changes.source is not None and not changes.inserts:
        start, stop = changes.source
        yield Edit(Span(start, start), "(SELECT * FROM ")
        yield Edit(Span(stop, stop), f" WHERE {guard}) AS {quote(changes.source_alias)}")


def _guard(found: RowFilter) -> str:
    """A condition that is always true, but fails for a matching row with another value."""
    listed = values_condition(str(found.guard), found)
    if found.guards_only:
        listed = _as_one_literal(str(found.guard), found) or listed
    asked = [f"({condition})" for condition in found.guarded]
    missing = " AND ".join([*asked, f"NOT ({listed})"])
    return f"IF({missing}, raise_error('{SOURCE_CHANGED}'), TRUE)"


def _as_one_literal(column: str, found: RowFilter) -> str | None:
    """A condition that is true if ``column`` has one of the values, which are one literal.

    Spark takes seconds to plan a MERGE with a list of thousands of literals. ``None`` if the
    values, as texts, have all separators in them.
    """
    separators = (each for each in _SEPARATORS if not any(each in text for text in found.values))
    separator = next(separators, None)
    if separator is None or not found.values:
        return None
    texts = literal(separator.join(found.values))
    return f"array_contains(split({texts}, {literal(separator)}), CAST({column} AS STRING))"
