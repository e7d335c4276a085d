"""Moves every conjunct of a Filter down as far as possible.

Before, the WHERE condition is after the join; after, it is at the scans:

    >>> from airflow_hive_opt.hive.example import filters_after
    >>> sql = "SELECT a.key FROM src a LEFT OUTER JOIN src1 b ON a.key = b.key WHERE a.key > '5'"
    >>> filters_after(push_predicates, sql)
    ['a: key > '5'', 'b: key > '5'']

Hive's outer join document has four cases. During-join predicates (ON) stay out of preserved tables
(J1; the join tree ensures this) and move to null-supplying tables (J2). After-join predicates
(WHERE) move to preserved tables (W1) and stay above null-supplying tables (W2).

Source: Hive's PredicatePushDown (OpProcFactory: JoinPPD, FilterPPD, LateralViewForwardPPD, ...).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from airflow_hive_opt.hive.generate.names import is_deterministic
from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.graph.backtracking import columns_of, through
from airflow_hive_opt.hive.parser.syntax import Constant, Expression
from airflow_hive_opt.hive.rules.filter_propagation import replaced


@dataclass(frozen=True)
class _Moving:
    """A conjunct that moves down: over the current operator's columns, with its alias."""

    expression: Expression
    alias: str | None
    generated: bool


@dataclass
class _Walk:
    graph: ops.OperatorGraph
    recognize_transitivity: bool
    remove_duplicates: bool
    done: dict[int, list[_Moving]] = field(default_factory=dict)


def push_predicates(graph: ops.OperatorGraph) -> None:
    """Moves the conjuncts of the graph's Filters."""
    settings = graph.settings
    if not settings.is_on("hive.optimize.ppd"):
        return
    walk = _Walk(
        graph,
        settings.is_on("hive.ppd.recognizetransivity"),
        settings.is_on("hive.ppd.remove.duplicatefilters"),
    )
    for scan in list(graph.scans):
        _settle(scan, _wanted_below(scan, walk))


def _wanted_below(operator: ops.Operator, walk: _Walk) -> list[_Moving]:
    """Returns the conjuncts that ``operator``'s only child passes down to its output."""
    if isinstance(operator, ops.LateralViewForward):
        # Conjuncts over the table function's columns stay on its branch.
        rows, function = operator.children
        _handed_down(function, operator, walk)
        return _handed_down(rows, operator, walk)
    if len(operator.children) != 1:
        # Hive removes the filters and inserts them again after their siblings.
        operator.children.sort(key=lambda child: isinstance(child, ops.Filter))
        for child in list(operator.children):
            if isinstance(child, ops.Filter):
                _settle(child, _wanted_below(child, walk))
            else:
                _settle_parent_output(child, walk)
        return []
    return _handed_down(operator.children[0], operator, walk)


def _settle_parent_output(child: ops.Operator, walk: _Walk) -> None:
    for moving in _handed_down(child, None, walk):
        parent = child.parents[0]
        new = ops.Filter(list(parent.columns), predicate=(moving.expression,))
        ops.insert_between(parent, new, child)


def _handed_down(child: ops.Operator, parent: ops.Operator | None, walk: _Walk) -> list[_Moving]:
    """Returns the conjuncts that ``child`` passes down to ``parent``."""
    key = id(child)
    if isinstance(child, (ops.Join, ops.LateralViewJoin)) or len(child.parents) > 1:
        if key not in walk.done:
            walk.done[key] = _process(child, walk)
        return _share_of(child, parent, walk.done[key])
    return _process(child, walk)


def _process(operator: ops.Operator, walk: _Walk) -> list[_Moving]:
    """Keeps conjuncts that must stay above ``operator`` and returns those that move below it."""
    if isinstance(operator, ops.Filter):
        return _filter(operator, walk)
    wanted = _wanted_below(operator, walk)
    if isinstance(operator, ops.Join):
        return _join(operator, wanted, walk)
    if isinstance(operator, ops.LateralViewJoin):
        return _lateral_view_join(operator, wanted)
    if isinstance(operator, (ops.Limit, ops.Script, ops.TableFunction, ops.UserTableFunction)):
        _settle(operator, wanted)
        return []
    moving: list[_Moving] = []
    staying: list[_Moving] = []
    for each in wanted:
        below = _below(each, operator)
        (staying if below is None else moving).append(below or each)
    _settle(operator, staying)
    return moving


def _below(moving: _Moving, operator: ops.Operator) -> _Moving | None:
    """Translates a conjunct over an operator's output to its input; ``None`` if impossible."""
    expression = through(moving.expression, operator)
    if expression is None or not is_deterministic(expression):
        return None
    return replace(moving, expression=expression)


def _filter(operator: ops.Filter, walk: _Walk) -> list[_Moving]:
    wanted = _wanted_below(operator, walk)
    if not all(is_deterministic(part) for part in operator.predicate):
        _settle(operator, wanted)
        return []
    own, staying = [], []
    for part in operator.predicate:
        aliases = _aliases(part, operator.parents[0])
        if len(aliases) > 1:
            staying.append(part)
        else:
            alias = next(iter(aliases), None)
            own.append(_Moving(part, alias, part in operator.generated))
    if walk.remove_duplicates:
        operator.predicate = tuple(staying)
        if not staying:
            ops.remove(operator)
    return own + wanted


def _aliases(expression: Expression, operator: ops.Operator) -> set[str | None]:
    found = set()
    for column in columns_of(expression):
        info = operator.info(column.name)
        found.add(info.table if info else None)
    return found


def _join(join: ops.Join, wanted: list[_Moving], walk: _Walk) -> list[_Moving]:
    """Applies rule 2: an after-join predicate does not move below a null-supplying side."""
    open_tags = _open_tags(join)
    inputs: list[list[_Moving]] = [[] for _ in join.parents]
    staying: list[_Moving] = []
    for each in wanted:
        tags = {join.sources[column.name] for column in columns_of(each.expression)}
        infos = _aliases(each.expression, join)
        # A constant moves to all inputs. A call over constants does not count as a constant.
        stays = not tags and not isinstance(each.expression, Constant)
        if stays or len(tags) > 1 or len(infos) > 1 or not tags <= open_tags:
            staying.append(each)
        else:
            below = _below(each, join)
            if below is None:
                staying.append(each)
                continue
            for tag in tags or range(len(inputs)):
                inputs[tag].append(below)
    _settle(join, staying)
    if walk.recognize_transitivity:
        _copy_through_keys(join, inputs)
    return [replace(each, alias=str(tag)) for tag, moving in enumerate(inputs) for each in moving]


def _lateral_view_join(join: ops.LateralViewJoin, wanted: list[_Moving]) -> list[_Moving]:
    """Moves each conjunct to the branch of the lateral view that has its columns."""
    moving: list[_Moving] = []
    staying: list[_Moving] = []
    for each in wanted:
        branches = {
            info.table == join.alias
            for column in columns_of(each.expression)
            if (info := join.info(column.name))
        }
        below = _below(each, join)
        if len(branches) != 1 or below is None:
            staying.append(each)
        else:
            moving.append(replace(below, alias="1" if branches.pop() else "0"))
    _settle(join, staying)
    return moving


def _share_of(
    child: ops.Operator, parent: ops.Operator | None, moving: list[_Moving]
) -> list[_Moving]:
    """Returns the conjuncts of a join that belong to one input.

    Operators other than joins pass the same conjuncts to every input.
    """
    if not isinstance(child, (ops.Join, ops.LateralViewJoin)) or parent is None:
        return moving
    tag = str(child.parents.index(parent))
    return [
        replace(each, alias=next(iter(_aliases(each.expression, parent)), None))
        for each in moving
        if each.alias == tag
    ]


def _open_tags(join: ops.Join) -> set[int]:
    """Returns the inputs that are not null-supplying (JoinPPD's getQualifiedAliases)."""
    found: set[int] = set()
    for condition in reversed(join.conditions):
        if condition.kind == "INNER":
            found.add(condition.right)
        elif condition.kind == "RIGHT OUTER":
            return found | {condition.right}
        elif condition.kind == "FULL OUTER":
            return found
    return found | {0}


def _copy_through_keys(join: ops.Join, inputs: list[list[_Moving]]) -> None:
    """Copies predicates on keys to the inputs joined on those keys (applyFilterTransitivity)."""
    given = [list(each) for each in inputs]
    for at in range(len(join.keys[0]) if join.keys else 0):
        first = 0
        for right in range(1, len(inputs)):
            kind = join.conditions[right - 1].kind
            if kind in ("INNER", "LEFT OUTER", "LEFT SEMI"):
                for left in range(first, right):
                    _copy(join, given[left], left, inputs[right], right, at)
            if kind in ("INNER", "RIGHT OUTER"):
                for left in range(right):
                    _copy(join, given[right], right, inputs[left], left, at)
            if kind == "RIGHT OUTER":
                first = right


def _copy(
    join: ops.Join, given: list[_Moving], source: int, into: list[_Moving], target: int, at: int
) -> None:
    for each in given:
        key, other = join.keys[source][at], join.keys[target][at]
        if not columns_of(each.expression) or each.generated:
            continue
        copy = replaced(each.expression, (key,), (other,))
        if copy is not None and all(copy != present.expression for present in into):
            into.append(_Moving(copy, None, False))


def _settle(operator: ops.Operator, conjuncts: list[_Moving]) -> None:
    """Inserts a Filter with ``conjuncts`` directly above ``operator``."""
    if not conjuncts:
        return
    unique = list(dict.fromkeys(each.expression for each in conjuncts))
    own = {each.expression for each in conjuncts if not each.generated}
    new = ops.Filter(
        list(operator.columns),
        predicate=tuple(unique),
        generated=frozenset(part for part in unique if part not in own),
    )
    ops.insert_above(operator, new)
