"""Makes ReduceSinks and Joins of join trees (SemanticAnalyzer.genJoinPlan)."""

from __future__ import annotations

from dataclasses import replace

from airflow_hive_opt.hive.generate import join_tree as trees
from airflow_hive_opt.hive.generate.generation import Generation, filtered, reduce_sink
from airflow_hive_opt.hive.generate.join_merging import merge
from airflow_hive_opt.hive.generate.join_tree import JoinContext, JoinTree
from airflow_hive_opt.hive.generate.names import NUMBERS, Scope, error, type_of
from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.parser import syntax
from airflow_hive_opt.statement.zip_strict import zip_strict


def generate(
    generation: Generation,
    source: syntax.JoinSource,
    bodies: tuple[syntax.Body, ...],
    sources: dict[str, ops.Operator],
) -> ops.Operator:
    """Makes the joins of a FROM clause. Conditions of WHERE may become join keys."""
    settings, hints, where = generation.settings, bodies[0].hints, bodies[0].where
    ignored = settings.is_on("hive.ignore.mapjoin.hint")
    context = JoinContext(
        generation.sql,
        {alias: operator.columns for alias, operator in sources.items()},
        () if ignored else _hinted(hints, "mapjoin", "broadcastjoin"),
        _hinted(hints, "streamtable"),
    )
    tree = trees.join_tree(source, context)
    if len(bodies) == 1 and where is not None and not tree.outer:
        trees.add_where_equalities(tree, where, context)
    if settings.is_on("hive.merge.nway.joins"):
        tree = merge(tree)
    _push_filters(generation, tree, sources)
    return join_sources(generation, tree, sources)


def _hinted(hints: tuple[tuple[str, tuple[str, ...]], ...], *names: str) -> tuple[str, ...]:
    return tuple(alias for name, aliases in hints if name in names for alias in aliases)


def _push_filters(generation: Generation, tree: JoinTree, sources: dict[str, ops.Operator]) -> None:
    """Filters each table by the ON conditions that may move to it."""
    if tree.left is not None:
        _push_filters(generation, tree.left, sources)
    for alias, conditions in zip_strict(tree.base, tree.pushed):
        if alias is not None:
            for condition in conditions:
                sources[alias] = filtered(generation.sql, sources[alias], condition)


def join_sources(
    generation: Generation,
    tree: JoinTree,
    sources: dict[str, ops.Operator],
    joining: ops.Operator | None = None,
) -> ops.Operator:
    """Makes the joins of a tree over its sources.

    ``joining`` is the outer query's last operator if the tree joins a subquery, else ``None``.
    """
    below = joining
    if tree.left is not None:
        below = join_sources(generation, tree.left, sources)
        for condition in tree.pushed[0]:
            below = filtered(generation.sql, below, condition)
    inputs: list[ops.Operator] = []
    for alias in tree.base:
        if alias is None:
            if below is None:
                raise TypeError("a join without its left side")
            inputs.append(below)
        elif tree.semi.get(alias):
            inputs.append(_semi_join_side(generation, sources[alias], tree.semi[alias]))
        else:
            inputs.append(sources[alias])
    keys = _keys(generation, tree, inputs)
    sinks = [_reduce_sink(generation, tree, *side) for side in zip_strict(inputs, keys)]
    found: ops.Operator = _join_operator(generation, tree, inputs, sinks, keys)
    if not tree.outer:
        for condition in tree.residual:
            found = filtered(generation.sql, found, condition)
    return found


def _semi_join_side(
    generation: Generation, operator: ops.Operator, fields: list[syntax.Expression]
) -> ops.Operator:
    """Makes the right side of a semi join: only its keys, grouped in the mapper."""
    scope = Scope(generation.sql, operator.columns)
    columns: list[ops.ColumnInfo] = []
    expressions: dict[str, syntax.Expression | None] = {}
    for key in dict.fromkeys(map(scope.resolve, fields)):
        internal = f"_col{len(columns)}"
        expressions[internal] = key
        info = operator.info(key.name) if isinstance(key, syntax.Column) else None
        name, table = info.name if info else "", operator.columns[0].table
        columns.append(ops.ColumnInfo(internal, table, name, type_of(key)))
    selected = ops.attach(ops.Select(columns, expressions=expressions), operator)
    grouped = ops.GroupBy(
        list(columns),
        expressions={info.internal: info.column for info in columns},
        mode="hash",
        keys=tuple(info.column for info in columns),
    )
    return ops.attach(grouped, selected)


def _keys(
    generation: Generation, tree: JoinTree, inputs: list[ops.Operator]
) -> list[list[syntax.Expression]]:
    """Returns the join keys of every input, cast to the type that all inputs share."""
    keys: list[list[syntax.Expression]] = []
    for tag, operator in enumerate(inputs):
        scope = Scope(generation.sql, operator.columns)
        alias = tree.base[tag]
        if alias is not None and tree.semi.get(alias):
            infos = operator.columns
            # The keys of a semi join's right side are the columns selected for it.
            resolved: list[syntax.Expression] = []
            for part in tree.keys[tag]:
                at = list(dict.fromkeys(tree.semi[alias])).index(part)
                resolved.append(infos[min(at, len(infos) - 1)].column)
            keys.append(resolved)
        else:
            keys.append([scope.resolve(part) for part in tree.keys[tag]])
    for at in range(len(keys[0])):
        kinds = {_base(type_of(key[at])) for key in keys} - {"unknown"}
        if len(kinds) > 1:
            common = _common_type(kinds)
            for key in keys:
                if _base(type_of(key[at])) != common:
                    key[at] = syntax.Call("cast", (key[at],), note=common)
    return keys


def _base(kind: str) -> str:
    base = kind.partition("(")[0]
    return "string" if base in ("varchar", "char") else base


def _common_type(kinds: set[str]) -> str:
    if kinds <= set(NUMBERS):
        return max(kinds, key=NUMBERS.index)
    if kinds & set(NUMBERS):
        return "double"
    return "string"


def _reduce_sink(
    generation: Generation, tree: JoinTree, operator: ops.Operator, keys: list[syntax.Expression]
) -> ops.ReduceSink:
    if not keys and generation.settings.forbids("hive.strict.checks.cartesian.product"):
        raise error(
            generation.sql,
            40000,
            "Cartesian products are forbidden: join on an equality, or set "
            "hive.strict.checks.cartesian.product=false or hive.mapred.mode=nonstrict",
        )
    if not tree.outer:
        wanted = [
            syntax.Call("isnotnull", (key,))
            for at, key in enumerate(keys)
            if not tree.null_safe[at]
            and not (isinstance(key, syntax.Column) and key.partition)
            and not isinstance(key, syntax.Constant)
        ]
        predicate = tuple(dict.fromkeys(wanted))
        if predicate and isinstance(operator, ops.Filter) and not operator.children:
            new = tuple(part for part in predicate if part not in operator.predicate)
            operator.predicate += new
            operator.generated |= frozenset(new)
        elif predicate:
            present = ops.Filter(
                list(operator.columns), predicate=predicate, generated=frozenset(predicate)
            )
            operator = ops.attach(present, operator)
    return reduce_sink(operator, keys)


def _join_operator(
    generation: Generation,
    tree: JoinTree,
    inputs: list[ops.Operator],
    sinks: list[ops.ReduceSink],
    keys: list[list[syntax.Expression]],
) -> ops.Join:
    columns: list[ops.ColumnInfo] = []
    expressions: dict[str, syntax.Expression | None] = {}
    sources: dict[str, int] = {}
    aliases: list[tuple[str, ...]] = []
    for tag, sink in enumerate(sinks):
        alias = tree.base[tag]
        aliases.append((alias,) if alias is not None else tuple(tree.left_aliases))
        if alias is not None and alias in tree.semi:
            continue
        for info in sink.columns:
            internal = f"_col{len(columns)}"
            columns.append(replace(info, internal=internal))
            expressions[internal] = info.column
            sources[internal] = tag
    filters = {}
    for tag, conditions in enumerate(tree.filters):
        if conditions:
            scope = Scope(generation.sql, inputs[tag].columns)
            filters[tag] = tuple(map(scope.resolve, conditions))
    residual: tuple[syntax.Expression, ...] = ()
    if tree.outer and tree.residual:
        scope = Scope(generation.sql, columns)
        residual = tuple(map(scope.resolve, tree.residual))
    found = ops.Join(
        columns,
        expressions=expressions,
        conditions=tuple(ops.JoinCondition(*condition) for condition in tree.conditions),
        sources=sources,
        aliases=tuple(aliases),
        order=tuple(range(len(sinks))),
        filters=filters,
        residual=residual,
        map_aliases=tuple(tree.map_aliases),
        stream_aliases=tuple(tree.stream_aliases),
        left_input_join=tree.base[0] is None,
        keys=tuple(tuple(key) for key in keys),
    )
    return ops.attach(found, *sinks)
