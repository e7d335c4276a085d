"""Merges joins on the same keys into one join of several tables (hive.merge.nway.joins)."""

from __future__ import annotations

from airflow_hive_opt.hive.generate.join_tree import JoinTree, aliases_in
from airflow_hive_opt.statement.zip_strict import zip_strict


def merge(tree: JoinTree) -> JoinTree:
    """Merges nodes that join on the same keys; the innermost node takes in the others."""
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
    """Tells whether a node can't be merged: an outer join with conditions over both sides."""
    return node.outer and bool(node.residual)


def _too_many(node: JoinTree, target: JoinTree) -> bool:
    """Tells whether a merged outer join would have more than 16 inputs.

    Hive keeps one bit for each input in a short.
    """
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
        aliases = aliases_in(condition)
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
