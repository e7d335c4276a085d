"""Join trees to ReduceSinks and Joins (SemanticAnalyzer.genJoinPlan)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_hive_opt.planner.hive import join_tree as trees
from airflow_hive_opt.planner.hive.join_tree import JoinContext, JoinTree
from airflow_hive_opt.planner.hive.names import Scope, error, type_of
from airflow_hive_opt.planner.hive.operators import (
    ColumnInfo,
    Filter,
    GroupBy,
    Join,
    JoinCondition,
    Operator,
    ReduceSink,
    Select,
    attach,
)
from airflow_hive_opt.planner.hive.subqueries import SubqueryJoin
from airflow_hive_opt.planner.hive.syntax import (
    Block,
    Call,
    Column,
    Constant,
    Expression,
    JoinSource,
    LateralView,
    Name,
)
from airflow_hive_opt.planner.zip_strict import zip_strict

if TYPE_CHECKING:
    from airflow_hive_opt.planner.hive.generate import Generator

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")


def generate(
    generator: Generator, block: Block, sources: dict[str, Operator], path: str
) -> Operator:
    """The joins of a block's FROM, and the lateral views over them."""
    source = block.source
    while isinstance(source, LateralView):
        source = source.source
    if not isinstance(source, JoinSource):
        raise TypeError("no join")
    hints = block.bodies[0].hints
    ignored = generator.settings.is_on("hive.ignore.mapjoin.hint")
    context = JoinContext(
        generator.sql,
        {alias: operator.columns for alias, operator in sources.items()},
        () if ignored else _hinted(hints, "mapjoin", "broadcastjoin"),
        _hinted(hints, "streamtable"),
    )
    tree = trees.join_tree(source, context)
    if len(block.bodies) == 1 and block.bodies[0].where is not None and not _any_outer(tree):
        trees.add_where_equalities(tree, block.bodies[0].where, context)
    if generator.settings.is_on("hive.merge.nway.joins"):
        tree = trees.merge(tree)
    _push_filters(generator, tree, sources)
    found = _join(generator, tree, sources, None, path)
    if isinstance(block.source, LateralView):
        return generator.lateral_views(block.source, found)
    return found


def _any_outer(tree: JoinTree | None) -> bool:
    return tree is not None and tree.outer


def _hinted(hints: tuple[tuple[str, tuple[str, ...]], ...], *names: str) -> tuple[str, ...]:
    return tuple(alias for name, aliases in hints if name in names for alias in aliases)


def join_subquery(
    generator: Generator,
    operator: Operator,
    join: SubqueryJoin,
    sources: dict[str, Operator],
    path: str,
    scope: Scope | None,
) -> Operator:
    """Joins the rows of a query with the subquery of its WHERE or HAVING."""
    if scope is not None:  # HAVING: what the group-by gives is one relation
        operator.columns = [
            replace(info, table=info.table or "gby_sq1", name=info.name or info.internal)
            for info in scope.columns
        ]
    inner = f"{path}:{join.alias}" if path else join.alias
    query = generator.query(join.query, inner, nested=True)
    width = len([info for info in query.columns if not info.hidden])
    extra = sum(1 for info in query.columns if info.name.startswith("sq_corr_"))
    if width - extra > 1 and _is_in(join):
        raise error(generator.sql, 40000, "the subquery of IN may give one column only")
    query.columns = [replace(info, table=join.alias) for info in query.columns if not info.hidden]
    columns = list(operator.columns)
    aliases = list(dict.fromkeys(info.table or "" for info in columns))
    if join.nulls is not None:
        nulls_path = f"{path}:{join.nulls_alias}" if path else join.nulls_alias
        nulls = generator.query(join.nulls, nulls_path, nested=True)
        nulls.columns = [replace(info, table=join.nulls_alias) for info in nulls.columns]
        zero = Constant("0", "bigint")
        count = generator.filter(nulls, Call("=", (_name(join.nulls_alias, "c"), zero)))
        tree = trees.subquery_join_tree(
            "LEFT SEMI", aliases, join.nulls_alias, None, JoinContext(generator.sql, {})
        )
        given = {**sources, join.nulls_alias: count}
        if tree.base[0]:
            given[tree.base[0]] = operator
        operator = _join(generator, tree, given, operator, path)
    context = JoinContext(generator.sql, _by_table(operator.columns) | {join.alias: query.columns})
    known = {} if scope is None else dict(scope.known)
    tree = trees.subquery_join_tree(
        join.kind, aliases, join.alias, _spelled_out(join.on, known, columns), context
    )
    given = {**sources, join.alias: query}
    if tree.base[0]:
        given[tree.base[0]] = operator
    return _join(generator, tree, given, operator, path)


def _is_in(join: SubqueryJoin) -> bool:
    first = join.on
    while isinstance(first, Call) and first.name == "and":
        first = first.arguments[0]
    if not isinstance(first, Call):
        return False
    right = first.arguments[1]
    return isinstance(right, Name) and not right.parts[-1].startswith("sq_corr_")


def _spelled_out(
    on: Expression, known: dict[Expression, Column], columns: list[ColumnInfo]
) -> Expression:
    """A condition whose group-by keys are named by the columns that hold them."""
    if on in known:
        internal = known[on].name
        info = next(info for info in columns if info.internal == internal)
        return _name(info.table or "gby_sq1", info.name or info.internal)
    if isinstance(on, Call):
        parts = tuple(_spelled_out(part, known, columns) for part in on.arguments)
        return replace(on, arguments=parts)
    return on


def _name(*parts: str) -> Expression:
    return Name(parts)


def _by_table(columns: list[ColumnInfo]) -> dict[str, list[ColumnInfo]]:
    found: dict[str, list[ColumnInfo]] = {}
    for info in columns:
        found.setdefault(info.table or "", []).append(info)
    return found


def _push_filters(generator: Generator, tree: JoinTree, sources: dict[str, Operator]) -> None:
    """Conditions of ON about one table that is not preserved go to that table."""
    if tree.left is not None:
        _push_filters(generator, tree.left, sources)
    for alias, conditions in zip_strict(tree.base, tree.pushed):
        if alias is not None:
            for condition in conditions:
                sources[alias] = generator.filter(sources[alias], condition)


def _join(
    generator: Generator,
    tree: JoinTree,
    sources: dict[str, Operator],
    joining: Operator | None,
    path: str,
) -> Operator:
    below = joining
    if tree.left is not None:
        below = _join(generator, tree.left, sources, None, path)
        for condition in tree.pushed[0]:
            below = generator.filter(below, condition)
    inputs: list[Operator] = []
    for alias in tree.base:
        if alias is None:
            if below is None:
                raise TypeError("a join without its left side")
            inputs.append(below)
        elif tree.semi.get(alias):
            inputs.append(_semi_join_side(generator, sources[alias], tree.semi[alias]))
        else:
            inputs.append(sources[alias])
    keys = _keys(generator, tree, inputs)
    sinks = [
        _reduce_sink(generator, tree, operator, key, tag)
        for tag, (operator, key) in enumerate(zip_strict(inputs, keys))
    ]
    found: Operator = _join_operator(generator, tree, inputs, sinks, keys, path)
    if not tree.outer:
        for condition in tree.residual:
            found = generator.filter(found, condition)
    return found


def _semi_join_side(generator: Generator, operator: Operator, fields: list[Expression]) -> Operator:
    """The right side of a semi join: only its keys, grouped as far as the mapper can."""
    scope = Scope(generator.sql, operator.columns)
    columns: list[ColumnInfo] = []
    expressions: dict[str, Expression | None] = {}
    for part in fields:
        resolved = scope.resolve(part)
        if resolved in expressions.values():
            continue
        internal = f"_col{len(columns)}"
        expressions[internal] = resolved
        info = operator.info(resolved.name) if isinstance(resolved, Column) else None
        table = operator.columns[0].table
        columns.append(ColumnInfo(internal, table, info.name if info else "", type_of(resolved)))
    selected = Select(columns, expressions=expressions)
    attach(selected, operator)
    grouped = GroupBy(
        list(columns),
        expressions={info.internal: info.column for info in columns},
        mode="hash",
        keys=tuple(info.column for info in columns),
    )
    attach(grouped, selected)
    return grouped


def _keys(generator: Generator, tree: JoinTree, inputs: list[Operator]) -> list[list[Expression]]:
    """Join keys of every input, cast to the type that all inputs share."""
    keys: list[list[Expression]] = []
    for tag, operator in enumerate(inputs):
        scope = Scope(generator.sql, operator.columns)
        alias = tree.base[tag]
        if alias is not None and tree.semi.get(alias):
            infos = operator.columns
            # The keys of a semi join's right side are what was selected for it.
            resolved: list[Expression] = []
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
                    key[at] = Call("cast", (key[at],), note=common)
    return keys


def _base(kind: str) -> str:
    base = kind.partition("(")[0]
    return "string" if base in ("varchar", "char") else base


def _common_type(kinds: set[str]) -> str:
    if kinds <= set(_NUMBERS):
        return max(kinds, key=_NUMBERS.index)
    if kinds & set(_NUMBERS):
        return "double"
    return "string"


def _reduce_sink(
    generator: Generator, tree: JoinTree, operator: Operator, keys: list[Expression], tag: int
) -> ReduceSink:
    if not keys and generator.settings.forbids("hive.strict.checks.cartesian.product"):
        raise error(
            generator.sql,
            40000,
            "Cartesian products are forbidden: join on an equality, or set "
            "hive.strict.checks.cartesian.product=false or hive.mapred.mode=nonstrict",
        )
    if not tree.outer:
        wanted = [
            Call("isnotnull", (key,))
            for at, key in enumerate(keys)
            if not tree.null_safe[at]
            and not (isinstance(key, Column) and key.partition)
            and not isinstance(key, Constant)
        ]
        predicate = tuple(dict.fromkeys(wanted))
        if predicate and isinstance(operator, Filter) and not operator.children:
            new = tuple(part for part in predicate if part not in operator.predicate)
            operator.predicate += new
            operator.generated |= frozenset(new)
        elif predicate:
            present = Filter(
                list(operator.columns), predicate=predicate, generated=frozenset(predicate)
            )
            attach(present, operator)
            operator = present
    sink = ReduceSink(
        list(operator.columns),
        keys=tuple(keys),
        partition_keys=tuple(keys),
        order="+" * len(keys),
        reducers=-1 if keys else 1,
        tag=tag,
    )
    attach(sink, operator)
    return sink


def _join_operator(
    generator: Generator,
    tree: JoinTree,
    inputs: list[Operator],
    sinks: list[ReduceSink],
    keys: list[list[Expression]],
    path: str,
) -> Join:
    columns: list[ColumnInfo] = []
    expressions: dict[str, Expression | None] = {}
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
            scope = Scope(generator.sql, inputs[tag].columns)
            filters[tag] = tuple(scope.resolve(condition) for condition in conditions)
    residual: tuple[Expression, ...] = ()
    if tree.outer and tree.residual:
        scope = Scope(generator.sql, columns)
        residual = tuple(scope.resolve(condition) for condition in tree.residual)
    found = Join(
        columns,
        expressions=expressions,
        conditions=tuple(JoinCondition(*condition) for condition in tree.conditions),
        sources=sources,
        aliases=tuple(aliases),
        scan_aliases=tuple(f"{path}:{alias}" if path else alias or "" for alias in tree.base),
        order=tuple(range(len(sinks))),
        filters=filters,
        residual=residual,
        map_aliases=tuple(tree.map_aliases),
        stream_aliases=tuple(tree.stream_aliases),
        left_input_join=tree.base[0] is None,
        keys=tuple(tuple(key) for key in keys),
    )
    attach(found, *sinks)
    return found
