"""A small catalog and ways to show a rule at work, for the rules' own examples."""

from __future__ import annotations

from collections.abc import Callable

from airflow_hive_opt.planner.build import build
from airflow_hive_opt.planner.catalog import Buckets, Column, JsonCatalog, Partition, Table
from airflow_hive_opt.planner.draw import draw
from airflow_hive_opt.planner.hive import drawing
from airflow_hive_opt.planner.hive.compiler import compile_statement
from airflow_hive_opt.planner.hive.operators import Filter, OperatorGraph
from airflow_hive_opt.planner.hive.render import render
from airflow_hive_opt.planner.hive.tasks import scans_below
from airflow_hive_opt.planner.operators import Operator, relations
from airflow_hive_opt.planner.parse import parse
from airflow_hive_opt.planner.plan import plan
from airflow_hive_opt.planner.resolve import resolve
from airflow_hive_opt.planner.settings import KEY_PREDICATE, Settings


def _columns(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "string") for name in names)


def _bucketed(name: str, count: int) -> Table:
    buckets = Buckets(("key",), count, (("key", "asc"),))
    return Table(name, _columns("key", "value"), total_bytes=5812, buckets=buckets)


CATALOG = JsonCatalog.of(
    [
        Table("default.src", _columns("key", "value"), total_bytes=5812),
        Table("default.src1", _columns("key", "value"), total_bytes=216),
        Table(
            "default.srcpart",
            _columns("key", "value"),
            _columns("ds", "hr"),
            partitions=tuple(
                Partition((day, hour), 5812)
                for day in ("2008-04-08", "2008-04-09")
                for hour in ("11", "12")
            ),
        ),
        _bucketed("default.b4", 4),
        _bucketed("default.b2", 2),
        Table("default.sales", _columns("item", "amount"), _columns("ds"), total_bytes=10**9),
        Table("default.days", _columns("ds", "year"), total_bytes=5812),
    ]
)


def before_and_after(rule: Callable[[Operator], Operator], sql: str) -> str:
    """The trees of ``sql`` before and after ``rule``, an arrow between them."""
    (tree,) = build(resolve(sql, parse(sql), CATALOG))
    return f"{draw(tree)}\n-->\n{draw(rule(tree))}"


def decisions(sql: str) -> str:
    """One line for each scan of a partitioned table."""
    return "\n".join(
        f"{decision.alias}: {decision.reason}"
        + (f", {decision.path}" if decision.pruned else "")
        + "".join(f" by {source.sql}" for source in decision.sources)
        for decision in plan(sql, CATALOG).decisions
    )


def surviving(from_: str, alias: str) -> str:
    """The conditions that the relation ``alias`` sees hold, and those it sees dropped."""
    from airflow_hive_opt.planner.rules.weakening import weaken

    sql = f"SELECT 1 FROM {from_}"
    (tree,) = build(resolve(sql, parse(sql), CATALOG))
    (select,) = tree.inputs
    (below,) = select.inputs
    weakened = weaken(below, relations(below)[alias])
    return "\n".join(
        [f"holds: {condition.text}" for condition in weakened.holding]
        + [f"dropped, {reason}: {condition.text}" for condition, reason in weakened.dropped]
    )


def lists(sql: str) -> str:
    """Where lists of partitions are made and read, Hive's checks loosened."""
    from airflow_hive_opt.planner.rules.partition_sink import place_sinks

    settings = Settings.of({"hive.mapred.mode": "nonstrict"})
    stages = compile_statement(sql, CATALOG, settings).stages
    return "\n".join(
        f"{sink.local_work.name} {sink.local_work.kind}: partitions of {sink.scan.alias} by "
        f"{', '.join(alias for source in sink.sources for alias in source.aliases)}\n"
        f"{sink.job.name} {sink.job.kind}: {sink.scan.alias} reads the list of "
        f"{sink.local_work.name}"
        for sink in place_sinks(stages, plan(sql, CATALOG).decisions)
    )


def _after(rule: Callable[[OperatorGraph], None], sql: str, settings: dict[str, str]) -> object:
    """The drawing and the filters of the graph right after ``rule``, Hive's checks loosened."""
    found: dict[str, object] = {}

    def watch(name: str, graph: OperatorGraph) -> None:
        if name == rule.__name__:
            found["tree"] = drawing.draw(graph)
            found["filters"] = [
                f"{scan.alias}: {render(part)}"
                for operator in graph.operators()
                if isinstance(operator, Filter)
                for part in operator.predicate
                if part not in operator.generated
                for scan in scans_below(operator)
            ]
            found["joins"] = [
                ", ".join(f"{each.kind} {each.left} {each.right}" for each in join.conditions)
                + f", order {' '.join(map(str, join.order))}"
                for join in graph.joins()
            ]

    compile_statement(sql, CATALOG, Settings.of(settings), watch)
    return found


def tree_after(rule: Callable[[OperatorGraph], None], sql: str, **settings: str) -> str:
    """Hive's operator graph right after ``rule``."""
    return str(_after(rule, sql, settings)["tree"])  # type: ignore[index]


def filters_after(rule: Callable[[OperatorGraph], None], sql: str, **settings: str) -> None:
    """Prints the user's filters right after ``rule``, with the scans they read."""
    print(f"[{', '.join(_quoted(_after(rule, sql, settings)))}]")


def _quoted(found: object) -> list[str]:
    return [f"'{text}'" for text in found["filters"]]  # type: ignore[index]


def joins_after(rule: Callable[[OperatorGraph], None], sql: str, **settings: str) -> object:
    """Conditions and order of the joins right after ``rule``."""
    return _after(rule, sql, settings)["joins"]  # type: ignore[index]


def stages(sql: str, **settings: str) -> str:
    """The kinds of Hive's stages."""
    plan = compile_statement(sql, CATALOG, Settings.of(settings))
    return ", ".join(task.kind for task in plan.stages)


def key_predicates(sql: str) -> str:
    """One line for each data column that a small side's keys can restrict."""
    settings = Settings.of({KEY_PREDICATE: "true"})
    return "\n".join(
        f"{found.relation.alias}.{found.column} by {found.source.sql}"
        for found in plan(sql, CATALOG, settings).predicates
    )
