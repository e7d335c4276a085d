"""Finds the conditions that hold for every row in which one relation's rows take part.

Only this module defines the effect of outer joins on pruning. Take a row b of relation B and any
row that the block makes from b. A relation is *real* if it contributes a row of its own to that
row, not NULLs in place of one. Starting from B, realness spreads through joins and through
conditions that NULLs can't fulfil. A condition *holds* if its operator must have let the row pass.
A row b may be left unread if no rows of the other relations fulfil, together with b, all
conditions that hold. Two kinds of conditions must not be used for this:

- A condition that reads a relation that is not real: NULLs may have fulfilled it.
- A condition that NULLs could fulfil, above an outer join that puts NULLs in b's place: leaving b
  unread would create such NULLs.

Ignoring a condition can only make more rows look needed, so an unusable condition is dropped.

Source: HIVE-5119, step 4.1, and Hive's outer-join pushdown rules.

>>> from airflow_hive_opt.pruning.example import surviving
>>> print(surviving('sales s LEFT JOIN days d ON s.ds = d.ds', 's'))
dropped, PRESERVED_SIDE: s.ds = d.ds
>>> print(surviving('days d LEFT JOIN sales s ON s.ds = d.ds AND d.year = 2000', 's'))
holds: s.ds = d.ds
holds: d.year = 2000
>>> print(surviving('sales s LEFT JOIN days d ON d.year = 2000 WHERE s.ds = d.ds', 's'))
holds: d.year = 2000
holds: s.ds = d.ds
>>> print(surviving('src x LEFT JOIN sales s ON x.key = s.item, days d WHERE s.ds <=> d.ds', 's'))
holds: x.key = s.item
dropped, NULLS_MAY_MATCH: s.ds <=> d.ds
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from airflow_hive_opt.pruning.operators import Filter, Join, LateralView, Operator, relations
from airflow_hive_opt.pruning.query import Condition, JoinKind
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.statement.budget import check_budget

_BOTH = (JoinKind.INNER, JoinKind.LEFT_SEMI)
_LEFT_ALWAYS = (JoinKind.LEFT_OUTER, JoinKind.LEFT_ANTI)


@dataclass(frozen=True)
class Weakened:
    """The conditions of a block, from the view of one of its relations.

    ``holding`` are the conditions that may be used, bottom up. ``dropped`` are the others, with
    the reason. ``real`` are the aliases of the relations that contribute a row of their own
    wherever the relation does.
    """

    holding: tuple[Condition, ...]
    dropped: tuple[tuple[Condition, Reason], ...]
    real: frozenset[str]


def weaken(tree: Operator, relation: Operator, supplied_within: bool = False) -> Weakened:
    """Finds the conditions that hold for the rows in which ``relation`` takes part.

    ``tree`` is the operator below a SELECT: joins, filters, lateral views, relations. ``relation``
    is one of its leaves. ``supplied_within`` says that an outer join inside the relation may have
    put NULLs in place of the rows in question.
    """
    operators = list(_block(tree))
    leaves = relations(tree)
    real = _real(operators, leaves, relation)
    aliases = frozenset(alias for alias, leaf in leaves.items() if id(leaf) in real)
    first = frozenset(alias for alias, leaf in leaves.items() if leaf is relation)
    supplied = _supplied(operators, relation, first if supplied_within else frozenset())
    holding, dropped = [], []
    for operator in reversed(operators):
        if not isinstance(operator, (Join, Filter)):
            continue
        for condition in operator.conditions:
            null_made = condition.aliases & supplied.get(id(operator), frozenset())
            if not _holds(operator, real):
                dropped.append((condition, Reason.PRESERVED_SIDE))
            elif not condition.aliases <= aliases or (null_made and not condition.null_rejecting):
                dropped.append((condition, Reason.NULLS_MAY_MATCH))
            else:
                holding.append(condition)
    return Weakened(tuple(holding), tuple(dropped), aliases)


def _block(operator: Operator) -> Iterator[Operator]:
    """The block's operators, top down, without the operators inside its relations."""
    yield operator
    if isinstance(operator, (Filter, Join, LateralView)):
        for input_ in operator.inputs:
            yield from _block(input_)


def _real(
    operators: list[Operator], leaves: Mapping[str, Operator], relation: Operator
) -> set[int]:
    real = {id(relation)}
    size = 0
    both_ways = (*reversed(operators), *operators)  # realness spreads up a chain of joins, and down
    while size < len(real):
        size = len(real)
        for operator in both_ways:
            check_budget()
            if not isinstance(operator, (Filter, Join, LateralView)):
                continue
            if any(id(input_) in real for input_ in operator.inputs):
                real.add(id(operator))
            if id(operator) not in real:
                continue
            real.update(id(input_) for input_ in _always_real(operator))
            if _holds(operator, real) and not isinstance(operator, LateralView):
                for condition in operator.conditions:
                    if condition.null_rejecting:
                        real.update(id(leaves[alias]) for alias in condition.aliases)
    return real


def _always_real(operator: Filter | Join | LateralView) -> tuple[Operator, ...]:
    """The inputs that contribute a row to each output row, also the right of a semi join."""
    if not isinstance(operator, Join) or operator.kind in _BOTH:
        return operator.inputs
    if operator.kind in _LEFT_ALWAYS:
        return (operator.left,)
    return (operator.right,) if operator.kind is JoinKind.RIGHT_OUTER else ()


def _holds(operator: Operator, real: set[int]) -> bool:
    """Whether a row that passes the operator fulfils its conditions."""
    if id(operator) not in real:
        return False
    return not isinstance(operator, Join) or all(id(input_) in real for input_ in operator.inputs)


def null_supplied(tree: Operator, relation: Operator) -> bool:
    """Whether an outer join of the block may put NULLs in place of the relation's rows."""
    return any(_supplies(above, below) for above, below in _upwards(list(_block(tree)), relation))


def _upwards(operators: list[Operator], relation: Operator) -> Iterator[tuple[Operator, Operator]]:
    """Each operator above the relation, with its input that contains the relation."""
    parents = {id(input_): operator for operator in operators for input_ in operator.inputs}
    below = relation
    while (above := parents.get(id(below))) is not None:
        yield above, below
        below = above


def _supplies(operator: Operator, input_: Operator) -> bool:
    """Whether the operator may put NULLs in place of a row of that input."""
    if not isinstance(operator, Join):
        return False
    kind = operator.kind
    return kind.supplies_nulls_left if operator.left is input_ else kind.supplies_nulls_right


def _supplied(
    operators: list[Operator], relation: Operator, supplied: frozenset[str]
) -> dict[int, frozenset[str]]:
    """For each operator above the relation, the aliases that may be NULL together with it.

    Outer joins below that operator may have made their columns NULL together with the relation's.
    """
    found: dict[int, frozenset[str]] = {}
    for above, below in _upwards(operators, relation):
        found[id(above)] = supplied
        if _supplies(above, below):
            supplied |= frozenset(relations(below))
    return found
