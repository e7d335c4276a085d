"""Turns joins with a MAPJOIN hint into map joins.

    >>> from airflow_hive_opt.hive.example import tree_after
    >>> sql = "SELECT /*+ MAPJOIN(b) */ a.key FROM src a JOIN src1 b ON a.key = b.key"
    >>> print(tree_after(convert_hinted, sql, **{"hive.ignore.mapjoin.hint": "false"}))
    TS a
      FIL key is not null
        MAPJOIN INNER big a
          SEL
            FS
    TS b
      FIL key is not null
        MAPJOIN INNER big a

The hint must name every input but one. The join streams the input that is left, which must not be
null-supplying. Below the join, another shuffle, join, union or lateral view is not allowed. Above
it, another join or union is not allowed.

Source: Hive's MapJoinProcessor and ``opAllowedBeforeMapJoin`` / ``opAllowedAfterMapJoin``.
"""

from __future__ import annotations

from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.statement.errors import PlanError

_NOT_BELOW = (ops.ReduceSink, ops.Union, ops.Join, ops.LateralViewJoin, ops.LateralViewForward)


def convert_hinted(graph: ops.OperatorGraph) -> None:
    """Converts hinted joins; raises :class:`PlanError` if Hive rejects the hint."""
    settings = graph.settings
    outer_allowed = settings.is_on("hive.optimize.bucketmapjoin") and settings.is_on(
        "hive.optimize.bucketmapjoin.sortedmerge"
    )
    for join in graph.joins():
        if not join.map_aliases:
            continue
        big = _big_table(join)
        if big is None:
            continue
        if not outer_allowed and big not in big_table_candidates(join.conditions):
            raise PlanError(
                "SEMANTIC",
                f"MAPJOIN({', '.join(join.map_aliases)}) would keep a preserved table of an outer "
                "join in memory: hint the other side",
                number=10057,
            )
        converted = to_map_join(join, big)
        for below in ops.reachable(converted.parents, lambda each: each.parents):
            if isinstance(below, _NOT_BELOW):
                raise _not_allowed(below)
        for above in ops.graph(converted.children):
            if isinstance(above, (ops.Union, ops.Join)):
                raise _not_allowed(above)


def _big_table(join: ops.Join) -> int | None:
    """Returns the one input that the hint does not name; ``None`` if there are several.

    With several such inputs the hint has no effect. Raises :class:`PlanError` if there is none.
    """
    big = None
    for tag, aliases in enumerate(join.aliases):
        from_join = tag == 0 and join.left_input_join
        if from_join or aliases[0] not in join.map_aliases:
            if big is not None:
                return None
            big = tag
    if big is None:
        message = f"MAPJOIN({', '.join(join.map_aliases)}) names every table: leave one to stream"
        raise PlanError("SEMANTIC", message, number=10058)
    return big


def to_map_join(join: ops.Join, big: int) -> ops.MapJoin:
    """Replaces a Join with a MapJoin and removes its ReduceSinks."""
    found = ops.MapJoin(**vars(join), big=big)
    ops.take_place(found, join)
    for parent in list(found.parents):
        if isinstance(parent, ops.ReduceSink):
            ops.remove(parent)
    return found


def big_table_candidates(conditions: tuple[ops.JoinCondition, ...]) -> set[int]:
    """Returns the inputs that a map join may stream (MapJoinProcessor.getBigTableCandidates).

    >>> kinds = ops.JoinCondition("INNER", 0, 1), ops.JoinCondition("LEFT OUTER", 0, 2)
    >>> big_table_candidates(kinds)
    {0, 1}
    """
    found: set[int] = set()
    seen: set[int] = set()
    left_of_right_outer: set[int] = set()
    seen_outer = last_right_outer = False
    for condition in conditions:
        seen |= {condition.left, condition.right}
        if condition.kind == "FULL OUTER":
            return set()
        if condition.kind in ("LEFT OUTER", "LEFT SEMI"):
            seen_outer, last_right_outer = True, False
            if not found:
                found.add(condition.left)
        elif condition.kind == "RIGHT OUTER":
            seen_outer = last_right_outer = True
            left_of_right_outer = seen - {condition.right}
            found = {condition.right}
        elif not seen_outer or last_right_outer:
            if condition.left not in left_of_right_outer:
                found.add(condition.left)
            found.add(condition.right)
    return found


def _not_allowed(operator: ops.Operator) -> PlanError:
    what = {"RS": "a job of its own", "MAPJOIN": "another map join", "JOIN": "a join"}.get(
        operator.short_name, "a union or lateral view"
    )
    message = f"a hinted map join can't be combined with {what}: leave the hint out"
    return PlanError("SEMANTIC", message, number=10227)
