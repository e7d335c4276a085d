"""What a local task hands over to a runner that does not know this package.

It is plain SQL and plain values: the restricted statement, the statements that guard it, and the
restricted scans with their partitions and keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from airflow_hive_opt.documents.descriptor import Descriptor, RowFilter, SourceKeys, Target
from airflow_hive_opt.documents.required_keys import FoundKeys
from airflow_hive_opt.pruning.scan_way import Way
from airflow_hive_opt.restriction.guard import guard
from airflow_hive_opt.restriction.list_condition import list_condition
from airflow_hive_opt.restriction.restrict import pruned_rows, restrict, ways_of
from airflow_hive_opt.restriction.row_changes import values_condition
from airflow_hive_opt.statement.identifiers import quote

_PASSWORD = re.compile(r"^(\w[\w+.-]*://)[^/@:]*:[^/@]*@")


@dataclass(frozen=True)
class HandedOver:
    """The statement, the statements before it that guard it, and its restricted scans as JSON."""

    sql: str
    guard: tuple[str, ...]
    partitions: tuple[dict[str, object], ...]

    @property
    def guarded(self) -> list[str]:
        """All statements, in the order in which they must run."""
        return [*self.guard, self.sql]


def handed_over(
    descriptor: Descriptor, sql: str, keys: FoundKeys | None, is_on_glue: bool
) -> HandedOver:
    """What another runner needs of a descriptor; ``sql`` is the user's statement.

    ``keys`` are those beside the descriptor, if there are any. ``is_on_glue`` says that the
    runner's metastore is AWS Glue.
    """
    targets, filters = descriptor.targets, descriptor.row_filters
    ways = ways_of(targets, is_on_glue)
    text = restrict(descriptor.statement or sql, targets, ways, filters, descriptor.changes)
    scans = [
        *(_pruned(target, keys) for target in targets),
        *(_filtered(found, keys) for found in filters),
    ]
    return HandedOver(text, guard(descriptor, keys), tuple(scans))


def script(statements: Iterable[str]) -> str:
    r"""The statements as one text, each with a semicolon at its end.

    >>> script(["SELECT 1", "SELECT 2;"])
    'SELECT 1\n;\nSELECT 2\n;\n'
    """
    # on a line of its own, because the text may end with a comment
    return "".join(text.rstrip("; \t\r\n") + "\n;\n" for text in statements)


def without_password(location: str | None) -> str | None:
    """The URI without a user's name and password, which XComs would show.

    >>> without_password("s3n://KEY:SECRET@bucket/a"), without_password("abfs://files@account/a")
    ('s3n://bucket/a', 'abfs://files@account/a')
    """
    return None if location is None else _PASSWORD.sub(r"\1", location)


def _pruned(target: Target, keys: FoundKeys | None) -> dict[str, object]:
    rows = pruned_rows(target)
    condition = "1 = 1"
    if rows is not None:
        condition = list_condition("", target.pruned_columns, rows, Way.FILTER)
    return {
        "scan": target.scan.name,
        "table": target.scan.table,
        "columns": list(target.columns),
        "types": list(target.types),
        "values": [list(partition.values) for partition in target.partitions],
        "condition": condition,
        "locations": [without_password(partition.location) for partition in target.partitions],
        "total": target.total,
        "keys": [_keys(source, keys) for source in target.sources],
    }


def _filtered(found: RowFilter, keys: FoundKeys | None) -> dict[str, object]:
    """A scan of a table with its own list of files: the condition finds them."""
    return {
        "scan": found.scan.name,
        "table": found.scan.table,
        "columns": [found.column],
        "types": [found.type],
        "values": None if found.is_range else [[text] for text in found.values],
        "condition": values_condition(quote(found.column), found),
        "locations": None,
        "total": None,
        "keys": [_keys(found.source, keys)],
    }


def _keys(source: SourceKeys, keys: FoundKeys | None) -> dict[str, object]:
    known = {"name": source.name, "sql": source.sql, "count": source.keys}
    for query, scan, listed in keys.by_query() if keys is not None else ():
        if query == source.sql:
            rows = [list(row) for row in zip(*listed.values)]
            own = {"columns": list(listed.columns), "types": scan.types_of(listed)}
            return {**known, **own, "values": rows}
    return {**known, "columns": None, "types": None, "values": None}
