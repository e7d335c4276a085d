"""Turns map joins of bucketed tables into joins bucket by bucket, and merges sorted buckets.

    >>> from airflow_hive_opt.hive.example import tree_after
    >>> sql = "SELECT /*+ MAPJOIN(b) */ a.key FROM b4 a JOIN b2 b ON a.key = b.key"
    >>> on = {"hive.ignore.mapjoin.hint": "false", "hive.optimize.bucketmapjoin": "true"}
    >>> print(tree_after(use_buckets, sql, **on).splitlines()[2].strip())
    BUCKETMAPJOIN INNER big a
    >>> on["hive.optimize.bucketmapjoin.sortedmerge"] = "true"
    >>> print(tree_after(use_buckets, sql, **on).splitlines()[2].strip())
    SORTMERGEBUCKETMAPJOIN INNER big a

The join keys must be plain columns and include all bucket columns, in the same positions on every
side. Of the big table's bucket count and another table's, one must divide the other. A merge also
needs the join keys as the first sort columns, in the same direction on every side. With
``hive.auto.convert.sortmerge.join``, a merge needs no hint: the join streams the table with the
largest average partition.

Source: Hive's BucketMapJoinOptimizer, SortedMergeBucketMapJoinOptimizer (AbstractBucketJoinProc,
AbstractSMBJoinProc).
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_hive_opt.hive.graph.backtracking import through
from airflow_hive_opt.hive.graph.operator_graph import (
    Filter,
    Join,
    MapJoin,
    Operator,
    OperatorGraph,
    ReduceSink,
    Select,
    TableScan,
)
from airflow_hive_opt.hive.parser.syntax import Column, Expression
from airflow_hive_opt.hive.rules.automatic_map_join import bytes_of
from airflow_hive_opt.hive.rules.hinted_map_join import big_table_candidates, to_map_join
from airflow_hive_opt.hive.rules.static_pruning import kept
from airflow_hive_opt.statement.catalog import Buckets
from airflow_hive_opt.statement.errors import PlanError


def use_buckets(graph: OperatorGraph) -> None:
    """Converts hinted map joins, and joins without a hint; raises :class:`PlanError`."""
    settings = graph.settings
    merging = settings.is_on("hive.optimize.bucketmapjoin.sortedmerge")
    if not merging and not settings.is_on("hive.optimize.bucketmapjoin"):
        return
    automatic = merging and settings.is_on("hive.auto.convert.sortmerge.join")
    for join in graph.joins():
        if isinstance(join, MapJoin):
            _convert_hinted(join, merging)
        elif automatic:
            _convert_automatically(join)


def _convert_hinted(join: MapJoin, merging: bool) -> None:
    sides = _bucketed_sides(join, join.big)
    if sides is None:
        return
    join.kind = "BucketMapJoin"
    if merging and _sorted_alike(sides):
        join.kind = "SortMergeBucketMapJoin"
    elif merging and join.big not in big_table_candidates(join.conditions):
        message = "the hinted tables are not sorted alike, so the hint must keep preserved rows out"
        raise PlanError("SEMANTIC", message, number=10057)


def _convert_automatically(join: Join) -> None:
    candidates = big_table_candidates(join.conditions)
    scans = [scan_below(parent) for parent in join.parents]
    found = [scan for scan in scans if scan is not None]
    if len(found) < len(scans) or not candidates:
        return
    big = max(sorted(candidates), key=lambda tag: _partition_size(found[tag]))
    sides = _bucketed_sides(join, big)
    if sides is not None and _sorted_alike(sides):
        converted = to_map_join(join, big)
        converted.kind, converted.automatic = "SortMergeBucketMapJoin", True


def _partition_size(scan: TableScan) -> float:
    partitions = kept(scan)
    size = bytes_of(scan) or 0
    return size / len(partitions) if partitions else size


def scan_below(operator: Operator) -> TableScan | None:
    """Returns the table scan below an operator, or ``None``.

    Only Selects, Filters and ReduceSinks may be between the two.
    """
    current = operator
    while not isinstance(current, TableScan):
        if len(current.parents) != 1 or not isinstance(current, (Select, Filter, ReduceSink)):
            return None
        current = current.parents[0]
    return current if current.table is not None else None


def _bucketed_sides(join: Join, big: int) -> list[tuple[Buckets, list[str]]] | None:
    """Returns the buckets and key columns of every side; ``None`` if the buckets do not fit.

    Raises :class:`PlanError` if a table's number of files is not its number of buckets.
    """
    sides: list[tuple[Buckets, list[str]]] = []
    counts: list[list[int]] = []
    places: list[int] | None = None
    for tag, parent in enumerate(join.parents):
        if tag == 0 and join.left_input_join:
            return None
        names = [column_at_scan(parent, key) for key in join.keys[tag]]
        scan = scan_below(parent)
        if scan is None or scan.table is None or None in names or not names:
            return None
        columns = [name for name in names if name is not None]
        buckets = scan.table.buckets
        if buckets is None or not set(buckets.columns) <= set(columns):
            return None
        own = [buckets.columns.index(name) if name in buckets.columns else -1 for name in columns]
        if places is not None and places != own:
            return None
        places = own
        _check_files(scan, buckets)
        partitions = kept(scan) if scan.table.partition_columns else None
        counts.append([buckets.count] * (1 if partitions is None else len(partitions)))
        sides.append((buckets, columns))
    for count in counts[big]:
        for others in counts:
            if any(count % other and other % count for other in others):
                return None
    return sides


def _check_files(scan: TableScan, buckets: Buckets) -> None:
    table = scan.table
    files = [table.files] if table is not None else []
    if table is not None and table.partition_columns:
        files = [partition.files for partition in kept(scan) or ()]
    for count in files:
        if count and count != buckets.count:
            message = (
                f"{scan.alias} has {count} files for {buckets.count} buckets: it was not written "
                "with its buckets"
            )
            raise PlanError("SEMANTIC", message, number=10141)


def column_at_scan(operator: Operator, key: Expression) -> str | None:
    """Returns the scan's column that a join key reads unchanged; ``None`` if there is none."""
    current, expression = operator, key
    while True:
        if not isinstance(expression, Column):
            return None
        if isinstance(current, TableScan):
            return expression.name
        if len(current.parents) != 1:
            return None
        below = through(expression, current)
        if below is None:
            return None
        current, expression = current.parents[0], below


def _sorted_alike(sides: Sequence[tuple[Buckets, list[str]]]) -> bool:
    first = sides[0][0].sort
    for buckets, columns in sides:
        if len(buckets.sort) < len(columns):
            return False
        for mine, other in zip(buckets.sort, first):
            if mine[1] != other[1]:
                return False
        if {name for name, _ in buckets.sort[: len(columns)]} != set(columns):
            return False
    return True
