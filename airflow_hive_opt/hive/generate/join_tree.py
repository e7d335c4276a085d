"""Hive's join tree: which condition joins which inputs.

The tree is left-deep: every node joins one more table to the result of the node below it, or to a
first table. :func:`join_tree` sorts the conditions of ON into join keys, conditions over one side,
and the rest. This is Hive's ``parseJoinCondition``, which applies rule 1 of Hive's outer join
document. ``join_merging`` then merges nodes that join on the same keys (``mergeJoinTree``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from airflow_hive_opt.hive.generate.names import error
from airflow_hive_opt.hive.graph.operator_graph import ColumnInfo
from airflow_hive_opt.hive.parser import syntax
from airflow_hive_opt.statement.errors import PlanError


@dataclass
class JoinTree:
    """A node of the join tree: position 0 is the left input, the others are ``right_aliases``.

    ``keys``, ``filters`` and ``pushed`` hold one list for each position. ``keys`` are the join
    keys. ``filters`` are ON conditions over a preserved side, which stay in the join. ``pushed``
    are ON conditions that may move to their table. ``residual`` holds ON conditions that belong to
    no single position: those over both sides, except equalities between the sides, and those with
    OR.
    """

    left: JoinTree | None
    left_aliases: list[str]
    right_aliases: list[str]
    base: list[str | None]
    conditions: list[tuple[str, int, int]]
    outer: bool
    left_alias: str | None = None
    keys: list[list[syntax.Expression]] = field(default_factory=lambda: [[], []])
    filters: list[list[syntax.Expression]] = field(default_factory=lambda: [[], []])
    pushed: list[list[syntax.Expression]] = field(default_factory=lambda: [[], []])
    null_safe: list[bool] = field(default_factory=list)
    residual: list[syntax.Expression] = field(default_factory=list)
    semi: dict[str, list[syntax.Expression]] = field(default_factory=dict)
    map_aliases: list[str] = field(default_factory=list)
    stream_aliases: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class JoinContext:
    """The facts about a block that sorting its join conditions needs."""

    sql: str
    columns: Mapping[str, Sequence[ColumnInfo]]
    map_hints: tuple[str, ...] = ()
    stream_hints: tuple[str, ...] = ()


def join_tree(source: syntax.JoinSource, context: JoinContext) -> JoinTree:
    """Returns the tree of a join; raises :class:`PlanError` for unknown names."""
    right = _alias_of(source.right, context.sql)
    if isinstance(source.left, syntax.JoinSource):
        left = join_tree(source.left, context)
        aliases = [*left.left_aliases, left.right_aliases[0]]
        tree = _node(source.kind, left, aliases, right, None)
    else:
        first = _alias_of(source.left, context.sql)
        tree = _node(source.kind, None, [first], right, first)
        tree.left_alias = first
    _sort_conditions(tree, source.on, context)
    present = (*tree.left_aliases, *tree.right_aliases)
    tree.map_aliases = [alias for alias in context.map_hints if alias in present]
    tree.stream_aliases = list(context.stream_hints)
    return tree


def subquery_join_tree(
    kind: str,
    left_aliases: list[str],
    right: str,
    on: syntax.Expression | None,
    context: JoinContext,
) -> JoinTree:
    """Returns the tree that joins a query's rows with a subquery of its WHERE."""
    base = left_aliases[0] if len(left_aliases) == 1 else None
    tree = _node(kind, None, left_aliases, right, base)
    _sort_conditions(tree, on, context)
    return tree


def _node(
    kind: str, left: JoinTree | None, left_aliases: list[str], right: str, base: str | None
) -> JoinTree:
    tree = JoinTree(
        left=left,
        left_aliases=left_aliases,
        right_aliases=[right],
        base=[base, right],
        conditions=[(kind, 0, 1)],
        outer=kind.endswith("OUTER"),
    )
    if kind == "LEFT SEMI":
        tree.semi[right] = []
    return tree


def _alias_of(source: syntax.Source, sql: str) -> str:
    """Returns the alias of one side of a join; raises :class:`PlanError` if it can't be a side."""
    if isinstance(source, syntax.LateralView):
        message = "a lateral view can't be one side of a join: put it into a subquery"
        raise error(sql, 10085, message, source.at)
    if isinstance(source, syntax.JoinSource):
        raise error(sql, 10018, "a join can't be the right side of a join", source.at)
    return source.alias


def _sort_conditions(tree: JoinTree, on: syntax.Expression | None, context: JoinContext) -> None:
    """Sorts the parts of ON into the lists of ``tree``."""
    kind = tree.conditions[0][0]
    left: list[str] = []
    for part in syntax.conjuncts(on):
        name = part.name if isinstance(part, syntax.Call) else ""
        if isinstance(part, syntax.Call) and name in ("=", "<=>"):
            sides = [_sides(tree, argument, context) for argument in part.arguments]
            if any(both[0] and both[1] for both in sides):
                tree.residual.append(part)
            else:
                _sort_equality(tree, part, kind, left, sides)
            continue
        in_left, in_right = _sides(tree, part, context)
        if name == "or" or (in_left and in_right):
            tree.residual.append(part)
        else:
            _keep_or_push(tree, part, kind, 0 if in_left else 1)
    if len(left) == 1:
        tree.left_alias = left[0]


def _keep_or_push(tree: JoinTree, on: syntax.Expression, kind: str, side: int) -> None:
    """Applies rule 1: an ON condition is not pushed to the preserved side."""
    preserved = ("LEFT OUTER", "FULL OUTER") if side == 0 else ("RIGHT OUTER", "FULL OUTER")
    (tree.filters if kind in preserved else tree.pushed)[side].append(on)


def _sort_equality(
    tree: JoinTree,
    on: syntax.Call,
    kind: str,
    left: list[str],
    sides: list[tuple[list[str], list[str]]],
) -> None:
    (first_left, first_right), (second_left, second_right) = sides
    first, second = on.arguments
    if (first_left and second_right) or (first_right and second_left):
        if first_right:
            first, second, first_left = second, first, second_left
        left.extend(alias for alias in first_left if alias not in left)
        tree.keys[0].append(first)
        tree.keys[1].append(second)
        tree.null_safe.append(on.name == "<=>")
        (right,) = tree.right_aliases
        if right in tree.semi:
            tree.semi[right].append(second)
        return
    both_left = first_left and second_left and kind not in ("LEFT OUTER", "FULL OUTER")
    if both_left and _hand_down(tree.left, on, kind, sides):
        return
    side = 0 if first_left or (second_left and not first_right) else 1
    _keep_or_push(tree, on, kind, side)


def _hand_down(
    tree: JoinTree | None, on: syntax.Call, kind: str, sides: list[tuple[list[str], list[str]]]
) -> bool:
    """Passes an equality between two tables on the left to the join below that joins them.

    Returns whether that join took it.
    """
    if tree is None or tree.outer:
        return False
    right = tree.right_aliases[0]
    first, second = sides[0][0], sides[1][0]
    if right in first and right in second:
        return False
    if (right in first and len(first) > 1) or (right in second and len(second) > 1):
        return False
    split = [([], part) if right in part else (part, []) for part in (first, second)]
    left: list[str] = []
    _sort_equality(tree, on, kind, left, split)
    if len(left) == 1:
        tree.left_alias = left[0]
    return True


def _sides(
    tree: JoinTree, expression: syntax.Expression, context: JoinContext
) -> tuple[list[str], list[str]]:
    """Returns the aliases of the left and of the right side that an expression reads."""
    left: list[str] = []
    right: list[str] = []
    for part in syntax.walk(expression):
        if isinstance(part, syntax.Subquery):
            raise error(context.sql, 40000, "a subquery can't stand in ON", part.at)
        if not isinstance(part, syntax.Name):
            continue
        alias = part.parts[0]
        if alias not in tree.left_aliases and alias not in tree.right_aliases:
            alias = _find_alias(part, context)
        side = left if alias in tree.left_aliases else right
        if alias not in tree.left_aliases and alias not in tree.right_aliases:
            message = f"ON reads {alias}, which is joined later"
            raise error(context.sql, 10009, message, part.at)
        if alias not in side:
            side.append(alias)
    return left, right


def _find_alias(name: syntax.Name, context: JoinContext) -> str:
    owners = [
        alias
        for alias, columns in context.columns.items()
        if any(info.name == name.parts[0] for info in columns)
    ]
    if len(owners) > 1:
        message = f"column {name.parts[0]} is in {' and in '.join(owners)}: name its table"
        raise error(context.sql, 10008, message, name.at)
    if not owners:
        message = f"there is no table or column {name.parts[0]} here"
        raise error(context.sql, 10009, message, name.at)
    return owners[0]


def add_where_equalities(tree: JoinTree, where: syntax.Expression, context: JoinContext) -> None:
    """Makes join keys of the equalities in WHERE (comma joins). The top join must not be outer."""
    for part in syntax.conjuncts(where):
        if not (isinstance(part, syntax.Call) and part.name in ("=", "<=>")):
            continue
        try:
            sides = [_sides(tree, argument, context) for argument in part.arguments]
        except PlanError:  # the WHERE clause reports the error
            continue
        if any(bool(left) == bool(right) for left, right in sides):
            continue
        left: list[str] = []
        _sort_equality(tree, part, tree.conditions[0][0], left, sides)
        if len(left) == 1:
            tree.left_alias = left[0]


def aliases_in(expression: syntax.Expression) -> set[str | None]:
    """Returns the first part of every name in an expression: the table, if the name has one."""
    return {part.parts[0] for part in syntax.walk(expression) if isinstance(part, syntax.Name)}
