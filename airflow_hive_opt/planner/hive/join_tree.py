"""Hive's join tree: which condition joins which inputs, and which joins share one job.

The tree is left-deep: every node joins the result of the node below it, or a first table, with
one table more. :func:`join_tree` sorts the conditions of ON into join keys, conditions of one
side and the rest (``parseJoinCondition``, which is where rule 1 of Hive's outer join document
lives); :func:`merge` puts nodes that join on the same keys together (``mergeJoinTree``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from airflow_hive_opt.planner.errors import PlanError
from airflow_hive_opt.planner.hive.names import error
from airflow_hive_opt.planner.hive.operators import ColumnInfo
from airflow_hive_opt.planner.hive.syntax import (
    Call,
    Expression,
    JoinSource,
    LateralView,
    Name,
    Source,
    Subquery,
    conjuncts,
    walk,
)
from airflow_hive_opt.planner.zip_strict import zip_strict


@dataclass
class JoinTree:
    """A node; position 0 is the left input, the others are ``right_aliases``.

    ``keys``, ``filters`` and ``pushed`` have a list a position: join keys, ON conditions of a
    preserved side (they stay in the join), and ON conditions that may go to their table.
    ``residual`` are conditions over both sides that are no equality of the two.
    """

    left: JoinTree | None
    left_aliases: list[str]
    right_aliases: list[str]
    base: list[str | None]
    conditions: list[tuple[str, int, int]]
    outer: bool
    left_alias: str | None = None
    keys: list[list[Expression]] = field(default_factory=lambda: [[], []])
    filters: list[list[Expression]] = field(default_factory=lambda: [[], []])
    pushed: list[list[Expression]] = field(default_factory=lambda: [[], []])
    null_safe: list[bool] = field(default_factory=list)
    residual: list[Expression] = field(default_factory=list)
    semi: dict[str, list[Expression]] = field(default_factory=dict)
    map_aliases: list[str] = field(default_factory=list)
    stream_aliases: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class JoinContext:
    """What sorting conditions needs to know of the block."""

    sql: str
    columns: Mapping[str, Sequence[ColumnInfo]]
    map_hints: tuple[str, ...] = ()
    stream_hints: tuple[str, ...] = ()


def join_tree(source: JoinSource, context: JoinContext) -> JoinTree:
    """The tree of a join; raises :class:`PlanError` for names that are not there."""
    right = alias_of(source.right, context.sql)
    if isinstance(source.left, JoinSource):
        left = join_tree(source.left, context)
        aliases = [*left.left_aliases, left.right_aliases[0]]
        tree = _node(source.kind, left, aliases, right, None)
    else:
        first = alias_of(source.left, context.sql)
        tree = _node(source.kind, None, [first], right, first)
        tree.left_alias = first
    sort_conditions(tree, source.on, context)
    present = (*tree.left_aliases, *tree.right_aliases)
    tree.map_aliases = [alias for alias in context.map_hints if alias in present]
    tree.stream_aliases = list(context.stream_hints)
    return tree


def subquery_join_tree(
    kind: str, left_aliases: list[str], right: str, on: Expression | None, context: JoinContext
) -> JoinTree:
    """The tree that joins a query's rows with a subquery of its WHERE."""
    base = left_aliases[0] if len(left_aliases) == 1 else None
    tree = _node(kind, None, left_aliases, right, base)
    sort_conditions(tree, on, context)
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


def alias_of(source: Source, sql: str) -> str:
    """The name of one side of a join."""
    if isinstance(source, LateralView):
        message = "a lateral view can't be one side of a join: put it into a subquery"
        raise error(sql, 10085, message, source.at)
    if isinstance(source, JoinSource):
        raise error(sql, 10018, "a join can't be the right side of a join", source.at)
    return source.alias


def sort_conditions(tree: JoinTree, on: Expression | None, context: JoinContext) -> None:
    """Sorts the parts of ON into the lists of ``tree``."""
    left_sources: list[str] = []
    kind = tree.conditions[0][0]
    _sort(tree, on, kind, left_sources, context)
    if len(left_sources) == 1:
        tree.left_alias = left_sources[0]


def _sort(
    tree: JoinTree, on: Expression | None, kind: str, left: list[str], context: JoinContext
) -> None:
    if on is None:
        return
    if isinstance(on, Call) and on.name == "and":
        for part in on.arguments:
            _sort(tree, part, kind, left, context)
    elif isinstance(on, Call) and on.name == "or":
        for part in on.arguments:
            _sides(tree, part, context)
        tree.residual.append(on)
    elif isinstance(on, Call) and on.name in ("=", "<=>"):
        sides = [_sides(tree, argument, context) for argument in on.arguments]
        if any(both[0] and both[1] for both in sides):
            tree.residual.append(on)
        else:
            _sort_equality(tree, on, kind, left, sides)
    else:
        found_left, found_right = _sides(tree, on, context)
        if found_left and found_right:
            tree.residual.append(on)
        else:
            _keep_or_push(tree, on, kind, 0 if found_left else 1)


def _keep_or_push(tree: JoinTree, on: Expression, kind: str, side: int) -> None:
    """Rule 1: a predicate of ON does not go past the preserved side."""
    preserved = ("LEFT OUTER", "FULL OUTER") if side == 0 else ("RIGHT OUTER", "FULL OUTER")
    (tree.filters if kind in preserved else tree.pushed)[side].append(on)


def _sort_equality(
    tree: JoinTree, on: Call, kind: str, left: list[str], sides: list[tuple[list[str], list[str]]]
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
    tree: JoinTree | None, on: Call, kind: str, sides: list[tuple[list[str], list[str]]]
) -> bool:
    """An equality of two tables on the left belongs to the join below that joins them."""
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
    tree: JoinTree, expression: Expression, context: JoinContext
) -> tuple[list[str], list[str]]:
    """The aliases on the left and on the right that an expression reads."""
    left: list[str] = []
    right: list[str] = []
    for part in walk(expression):
        if isinstance(part, Subquery):
            raise error(context.sql, 40000, "a subquery can't stand in ON", part.at)
        if not isinstance(part, Name):
            continue
        alias = part.parts[0]
        if alias not in tree.left_aliases and alias not in tree.right_aliases:
            alias = _find_alias(part, context)
        side = left if alias in tree.left_aliases else right
        if alias not in tree.left_aliases and alias not in tree.right_aliases:
            message = f"{alias} is not joined here yet"
            raise error(context.sql, 10009, message, part.at)
        if alias not in side:
            side.append(alias)
    return left, right


def _find_alias(name: Name, context: JoinContext) -> str:
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


def add_where_equalities(tree: JoinTree, where: Expression, context: JoinContext) -> None:
    """Equalities of WHERE become join keys where no join is outer (comma joins)."""
    for part in conjuncts(where):
        if not (isinstance(part, Call) and part.name in ("=", "<=>")):
            continue
        try:
            sides = [_sides(tree, argument, context) for argument in part.arguments]
        except PlanError:  # WHERE itself will tell
            continue
        if any(bool(left) == bool(right) for left, right in sides):
            continue
        left: list[str] = []
        _sort_equality(tree, part, tree.conditions[0][0], left, sides)
        if len(left) == 1:
            tree.left_alias = left[0]


def merge(tree: JoinTree) -> JoinTree:
    """Joins on the same keys become one node; the innermost node takes the others in."""
    nodes: list[JoinTree | None] = []
    node: JoinTree | None = tree
    while node is not None:
        nodes.append(node)
        node = node.left
    for at in range(len(nodes) - 1, -1, -1):
        target = nodes[at]
        if target is None:
            continue
        blocked: str | None = None
        for other in range(at - 1, -1, -1):
            node = nodes[other]
            if node is None:
                continue
            kind = _kind(node)
            if blocked is not None and blocked != kind:
                break
            found = _merge_position(node, target)
            if found is not None and (_filters_late(node) or _filters_late(target)):
                continue
            if found is not None and not _too_many(node, target):
                _merge_into(target, node, *found)
                nodes[other] = None
            elif found is None and blocked is None:
                blocked = kind
    left_over = [node for node in nodes if node is not None]
    pairs = list(zip(left_over, left_over[1:]))
    for upper, lower in pairs:
        upper.left = lower
    for upper, lower in reversed(pairs):
        upper.left_aliases = [*lower.left_aliases, *lower.right_aliases]
    return left_over[0]


def _kind(node: JoinTree) -> str:
    kinds = {kind for kind, _, _ in node.conditions}
    return kinds.pop() if len(kinds) == 1 else "mixed"


def _filters_late(node: JoinTree) -> bool:
    """An outer join with conditions over both sides must be done before the next join."""
    return node.outer and bool(node.residual)


def _too_many(node: JoinTree, target: JoinTree) -> bool:
    """Outer joins keep a bit an input in a short: not more than 16."""
    return (node.outer or target.outer) and (
        len(node.right_aliases) + len(target.right_aliases) + 1 > 16
    )


def _merge_position(node: JoinTree, target: JoinTree) -> tuple[int, list[int]] | None:
    alias = node.left_alias
    if alias is None and (node.outer or target.outer):
        return None
    if alias is None or alias == target.left_alias:
        position = 0
    elif alias in target.right_aliases:
        position = target.right_aliases.index(alias) + 1
    else:
        return None
    keys, node_keys = target.keys[position], node.keys[0]
    if len(keys) != len(node_keys) or set(keys) != set(node_keys):
        return None
    return position, [node_keys.index(key) for key in keys]


def _merge_into(target: JoinTree, node: JoinTree, position: int, order: list[int]) -> None:
    shift = len(target.conditions)
    target.right_aliases = target.right_aliases + node.right_aliases
    target.base = target.base + node.base[1:]
    for keys in node.keys[1:]:
        target.keys.append([keys[at] for at in order])
    target.null_safe = [
        safe and other for safe, other in zip_strict(target.null_safe, node.null_safe)
    ]
    target.filters += node.filters[1:]
    target.filters[position] += node.filters[0]
    target.pushed += node.pushed[1:]
    for condition in node.pushed[0]:
        aliases = _aliases(condition)
        if len(aliases) == 1 and aliases <= set(target.base):
            target.pushed[target.base.index(aliases.pop())].append(condition)
        else:
            target.residual.append(condition)
    target.residual += node.residual
    target.outer = target.outer or node.outer
    target.semi.update(node.semi)
    for kind, left, right in node.conditions:
        target.conditions.append((kind, left + shift if left else position, right + shift))
    target.map_aliases += [alias for alias in node.map_aliases if alias not in target.map_aliases]


def _aliases(expression: Expression) -> set[str | None]:
    return {part.parts[0] for part in walk(expression) if isinstance(part, Name)}
