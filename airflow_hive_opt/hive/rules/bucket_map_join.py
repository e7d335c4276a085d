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

Every table and partition that is read must have one file for each bucket, or no file: Hive rejects
the statement otherwise. It inspects one input after the other. An input whose columns do not fit
ends the inspection, so a wrong number of files after it is no error. Of a partitioned table, Hive
inspects the partitions that are read: with none, the table fits any buckets.

Source: Hive's BucketMapJoinOptimizer, SortedMergeBucketMapJoinOptimizer (AbstractBucketJoinProc,
AbstractSMBJoinProc).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.graph.backtracking import through
from airflow_hive_opt.hive.parser.syntax import Column, Expression
from airflow_hive_opt.hive.rules.automatic_map_join import bytes_of
from airflow_hive_opt.hive.rules.hinted_map_join import big_table_candidates, to_map_join
from airflow_hive_opt.hive.rules.static_pruning import kept
from airflow_hive_opt.hive.tasks import scans_below
from airflow_hive_opt.statement.catalog import Buckets
from airflow_hive_opt.statement.errors import PlanError


def use_buckets(graph: ops.OperatorGraph) -> None:
    """Converts hinted map joins, and joins without a hint; raises :class:`PlanError`."""
    settings = graph.settings
    merging = settings.is_on("hive.optimize.bucketmapjoin.sortedmerge")
    if not merging and not settings.is_on("hive.optimize.bucketmapjoin"):
        return
    automatic = merging and settings.is_on("hive.auto.convert.sortmerge.join")
    for join in graph.joins():
        if isinstance(join, ops.MapJoin):
            _convert_hinted(join, merging)
        elif automatic and _starts_plain(join, graph.scans):
            _convert_automatically(join)


def _convert_hinted(join: ops.MapJoin, merging: bool) -> None:
    sides = _bucketed_sides(join, join.big)
    if sides is None:
        return
    join.kind = "BucketMapJoin"
    if merging and _sorted_alike(sides):
        join.kind = "SortMergeBucketMapJoin"
    elif merging and join.big not in big_table_candidates(join.conditions):
        message = (
            "the hinted tables are not sorted alike, so MAPJOIN can't name the preserved side of "
            "an outer join"
        )
        raise PlanError("SEMANTIC", message, number=10246)


def _starts_plain(join: ops.Join, scans: Sequence[ops.TableScan]) -> bool:
    """Tells whether only Selects and Filters are between a join and the first scan below it.

    Hive tests this path before it inspects any input.
    """
    paths = [(scan, parent) for parent in join.parents for scan in scans_below(parent)]
    first, parent = min(paths, key=lambda path: scans.index(path[0]))
    return scan_below(parent) is first


def _convert_automatically(join: ops.Join) -> None:
    candidates = big_table_candidates(join.conditions)
    scans = [scan_below(_inspected(parent)) for parent in join.parents]
    found = [scan for scan in scans if scan is not None]
    if len(found) < len(scans) or not candidates:
        return
    big = max(sorted(candidates), key=lambda tag: _partition_size(found[tag]))
    sides = _bucketed_sides(join, big)
    if sides is not None and _sorted_alike(sides):
        converted = to_map_join(join, big)
        converted.kind, converted.automatic = "SortMergeBucketMapJoin", True


def _partition_size(scan: ops.TableScan) -> float:
    partitions = kept(scan)
    size = bytes_of(scan) or 0
    return size / len(partitions) if partitions else size


def scan_below(operator: ops.Operator) -> ops.TableScan | None:
    """Returns the table scan below an operator, or ``None``.

    Only Selects, Filters and a join's own ReduceSink may be between the two.
    """
    current = operator.parents[0] if isinstance(operator, ops.ReduceSink) else operator
    while not isinstance(current, ops.TableScan):
        if len(current.parents) != 1 or not isinstance(current, (ops.Select, ops.Filter)):
            return None
        current = current.parents[0]
    return current if current.table is not None else None


@dataclass(frozen=True)
class _Side:
    """An input: its key columns, and its buckets, or ``None`` if it reads no partition."""

    columns: tuple[str, ...]
    buckets: Buckets | None
    counts: tuple[int, ...]

    @property
    def places(self) -> tuple[int, ...] | None:
        """The place of every key among the bucket columns; ``None`` if a bucket column is no key.

        It is empty if there are no buckets.
        """
        if self.buckets is None:
            return ()
        own = self.buckets.columns
        if not set(own) <= set(self.columns):
            return None
        return tuple(own.index(name) if name in own else -1 for name in self.columns)


def _bucketed_sides(join: ops.Join, big: int) -> list[_Side] | None:
    """Returns all inputs; ``None`` if the buckets do not fit.

    Raises :class:`PlanError` if a table's number of files is not its number of buckets.
    """
    if join.left_input_join:
        return None
    sides: list[_Side] = []
    places: tuple[int, ...] = ()
    for tag, parent in enumerate(join.parents):
        scan, names = scan_below(_inspected(parent)), _key_columns(parent, join.keys[tag])
        if scan is None or names is None:
            return None
        side = _side(scan, names)
        if side is None or side.places is None or (places and side.places not in ((), places)):
            return None
        places = places or side.places
        if side.buckets is not None:
            _check_files(scan, side.buckets)
        sides.append(side)
    others = [count for side in sides for count in side.counts]
    if any(count % other and other % count for count in sides[big].counts for other in others):
        return None
    return sides


def _side(scan: ops.TableScan, names: tuple[str, ...]) -> _Side | None:
    """Returns the input that reads ``scan``; ``None`` if it reads a table without buckets."""
    table = scan.table
    if table is None:
        return None
    partitions = kept(scan) if table.partition_columns else None
    if partitions == ():
        return _Side(names, None, ())
    if table.buckets is None:
        return None
    number = 1 if partitions is None else len(partitions)
    return _Side(names, table.buckets, (table.buckets.count,) * number)


def _semi_join_select(operator: ops.Operator) -> ops.Operator | None:
    """Returns the Select of a semi join's keys; ``None`` on other inputs of a join.

    Hive adds it to the right side, with a group-by above it.
    """
    group = operator.parents[0] if isinstance(operator, ops.ReduceSink) else operator
    return group.parents[0] if isinstance(group, ops.GroupBy) and group.mode == "hash" else None


def _inspected(operator: ops.Operator) -> ops.Operator:
    """Returns the operator from which Hive looks for the scan of a join's input."""
    selected = _semi_join_select(operator)
    return operator if selected is None else selected.parents[0]


def _key_columns(operator: ops.Operator, keys: Sequence[Expression]) -> tuple[str, ...] | None:
    """Returns the scan's columns that the join keys read; ``None`` if a key is no plain column.

    On the right side of a semi join, Hive looks for the group-by's columns (``_col0``) in what the
    join reads. A subquery has such columns, and they are not always the keys. A table has none:
    the names stay, and are no bucket columns.
    """
    selected, inspected = _semi_join_select(operator), _inspected(operator)
    found: list[str | None] = []
    if selected is None:
        found += (column_at_scan(inspected, key) for key in keys)
    else:
        chosen = (selected.expressions or {}).values()
        read = {
            each.name: column_at_scan(inspected, each)
            for each in chosen
            if isinstance(each, Column)
        }
        if len(read) < len(chosen) or None in read.values():
            return None
        found += (read.get(key.name, key.name) if isinstance(key, Column) else None for key in keys)
    names = tuple(name for name in found if name is not None)
    return names if names and len(names) == len(keys) else None


def _check_files(scan: ops.TableScan, buckets: Buckets) -> None:
    table = scan.table
    if table is None:
        return
    files = [(table.name, table.files)]
    if table.partition_columns:
        files = [
            (f"{table.name}, partition {'/'.join(partition.values)},", partition.files)
            for partition in kept(scan) or ()
        ]
    for name, count in files:
        if count and count != buckets.count:
            message = (
                f"{name} has {count} files for {buckets.count} buckets: write it again with its "
                "buckets, or set hive.optimize.bucketmapjoin=false and "
                "hive.optimize.bucketmapjoin.sortedmerge=false"
            )
            raise PlanError("SEMANTIC", message, number=10141)


def column_at_scan(operator: ops.Operator, key: Expression) -> str | None:
    """Returns the scan's column that a join key reads unchanged; ``None`` if there is none."""
    current, expression = operator, key
    while True:
        if not isinstance(expression, Column):
            return None
        if isinstance(current, ops.TableScan):
            return expression.name
        if len(current.parents) != 1:
            return None
        below = through(expression, current)
        if below is None:
            return None
        current, expression = current.parents[0], below


def _sorted_alike(sides: Sequence[_Side]) -> bool:
    first = sides[0].buckets.sort if sides[0].buckets else ()
    for side in sides:
        if side.buckets is None:
            continue
        sort, number = side.buckets.sort, len(side.columns)
        if len(sort) < number:
            return False
        if any(mine[1] != other[1] for mine, other in zip(sort, first)):
            return False
        if {name for name, _ in sort[:number]} != set(side.columns):
            return False
    return True
