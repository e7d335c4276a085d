"""How Spark, which makes its own plan, runs the joins and hints of Hive's plan.

A map join becomes a broadcast join. In place of a conditional task, Spark's adaptive execution
chooses the join at run time. A join needs no shuffle if Spark itself wrote both tables with the
same buckets. Spark can't use the buckets that Hive wrote, because Hive and Spark use different hash
functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from airflow_hive_opt.hive.compiler import HivePlan
from airflow_hive_opt.hive.graph.operator_graph import Join, MapJoin, TableScan
from airflow_hive_opt.hive.rules.bucket_map_join import column_at_scan, scan_below
from airflow_hive_opt.hive.tasks import Task
from airflow_hive_opt.statement.catalog import Buckets
from airflow_hive_opt.statement.parse import parse
from airflow_hive_opt.statement.text_enum import StrEnum

_HINT_COMMENT = re.compile(r"/\*\+(.*?)\*/", re.DOTALL)
_HINTS = {
    "mapjoin": "Spark broadcasts the tables, whatever their size and hive.ignore.mapjoin.hint say",
    "broadcastjoin": "Spark broadcasts the tables, whatever their size",
    "streamtable": "Spark ignores this hint: its sort-merge join streams both sides",
    "hold_ddltime": "Spark ignores this hint, which changes no rows",
}


class Strategy(StrEnum):
    """The way in which Spark runs a join."""

    BROADCAST = "broadcast"
    ADAPTIVE = "adaptive"
    BUCKETED = "bucketed"
    SORT_MERGE = "sort-merge"


_SENTENCES = {
    Strategy.BROADCAST: (
        "a broadcast join: the small tables are within Hive's size settings "
        "(unless spark.sql.autoBroadcastJoinThreshold is -1)"
    ),
    Strategy.ADAPTIVE: (
        "adaptive execution in place of Hive's conditional task: a sort-merge join, which becomes "
        "a broadcast join if the shuffle of a side turns out to be within "
        "spark.sql.adaptive.autoBroadcastJoinThreshold"
    ),
    Strategy.BUCKETED: "a sort-merge join without a shuffle: Spark bucketed the tables alike",
    Strategy.SORT_MERGE: "a sort-merge join: both sides are shuffled by the key",
}
_HIVE_BUCKETS = (
    "a sort-merge join: both sides are shuffled by the key, since Spark can't use buckets that "
    "Hive wrote (it places keys by another hash function)"
)


@dataclass(frozen=True)
class SparkWork:
    """The number of table scans and of shuffles by key that Spark needs for a statement.

    ``shuffles`` is ``None`` if only the text of the statement is known.
    """

    scans: int
    shuffles: int | None = None


@dataclass(frozen=True)
class SparkJoin:
    """One join of Hive's plan and how Spark runs it."""

    stage: str
    aliases: tuple[str, ...]
    strategy: Strategy
    message: str


def joins_on_spark(plan: HivePlan) -> tuple[SparkJoin, ...]:
    """Returns Hive's joins and how Spark runs each.

    The branches of a Conditional repeat the joins of their backup task, so only the backup counts.
    """
    return tuple(
        _on_spark(task, join)
        for task in plan.stages
        if task.kind == "MapReduce" and task.backup is None
        for join in task.joins()
    )


def work_by_text(sql: str) -> SparkWork:
    """Counts the table scans in the text of a statement. A CTE's scans count once.

    Raises :class:`PlanError` if the statement can't be parsed.

    >>> work_by_text("SELECT 1 FROM a, b WHERE a.k IN (SELECT k FROM a)").scans
    3
    """
    tree = parse(sql)
    shared = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    query = tree if isinstance(tree, exp.Query) else tree.args.get("expression")
    read = query.find_all(exp.Table) if isinstance(query, exp.Expr) else ()
    return SparkWork(sum(table.db != "" or table.name.lower() not in shared for table in read))


def hints_on_spark(sql: str) -> Iterator[tuple[str, str]]:
    """Yields Hive's hints as the statement spells them, each with what Spark does with it.

    >>> dict(hints_on_spark("select /*+ MAPJOIN(d), STREAMTABLE(f) */ 1")).keys()
    dict_keys(['MAPJOIN', 'STREAMTABLE'])
    """
    for comment in _HINT_COMMENT.findall(sql):
        for name in re.findall(r"\w+(?=\s*\()", comment):
            if name.lower() in _HINTS:
                yield name, _HINTS[name.lower()]


def _on_spark(task: Task, join: Join) -> SparkJoin:
    aliases = tuple(alias for input_ in join.aliases for alias in input_[:1])
    buckets = _buckets(join)
    strategy, message = Strategy.SORT_MERGE, _SENTENCES[Strategy.SORT_MERGE]
    if isinstance(join, MapJoin) and join.kind == "MapJoin":
        strategy = Strategy.BROADCAST
    elif buckets and all(each.by_spark for each in buckets):
        strategy = Strategy.BUCKETED
    elif task.branch_of is not None:
        strategy = Strategy.ADAPTIVE
    message = _SENTENCES[strategy]
    if strategy is Strategy.SORT_MERGE and buckets:
        message = _HIVE_BUCKETS
    return SparkJoin(task.name, aliases, strategy, message)


def _buckets(join: Join) -> list[Buckets]:
    """Returns the buckets of every input of a join.

    The list is empty unless the join's keys are the bucket columns of every input and all inputs
    have the same number of buckets.
    """
    found = []
    for tag, parent in enumerate(join.parents):
        scan: TableScan | None = None if tag == 0 and join.left_input_join else scan_below(parent)
        buckets = scan.table.buckets if scan is not None and scan.table is not None else None
        names = tuple(column_at_scan(parent, key) for key in join.keys[tag])
        if buckets is None or set(names) != set(buckets.columns):
            return []
        found.append(buckets)
    return found if len({each.count for each in found}) == 1 else []
