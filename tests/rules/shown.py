"""How the effect of each rule is shown in its fixture file."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import ExitStack
from unittest import mock

from airflow_hive_opt.hive import compiler
from airflow_hive_opt.hive import example as hive
from airflow_hive_opt.hive.explain.graph_text import draw
from airflow_hive_opt.hive.graph.operator_graph import OperatorGraph
from airflow_hive_opt.hive.rules import GRAPH_RULES, TASK_RULES
from airflow_hive_opt.hive.rules.fetch import only_fetches
from airflow_hive_opt.pruning import example as pruning
from airflow_hive_opt.pruning.operators import Filter, Join, walk
from airflow_hive_opt.pruning.plan import plan
from airflow_hive_opt.pruning.rules import RULES
from airflow_hive_opt.pruning.rules.disjunctions import add_implied
from airflow_hive_opt.pruning.rules.predicate_pushdown import push_down
from airflow_hive_opt.pruning.rules.row_level_keys import drop_unusable_keys
from airflow_hive_opt.rewriting import blocks, rewrite
from airflow_hive_opt.rewriting.broadcast_hints import with_broadcasts
from airflow_hive_opt.rewriting.example import CATALOG
from airflow_hive_opt.rewriting.join_elimination import RedundantJoin, eliminate_joins
from airflow_hive_opt.rewriting.rewrite import RULES as REWRITINGS
from airflow_hive_opt.statement.edits import spliced
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.parse import parse
from airflow_hive_opt.statement.script import split_settings
from airflow_hive_opt.statement.settings import CORRELATION, Settings
from airflow_hive_opt.statement.zip_strict import zip_strict

# The size in bytes up to which Spark broadcasts a table without a hint, in these examples.
THRESHOLD = 1_000_000
UNCHANGED = "(unchanged)"
# Files in the folders of rules that only evaluate what others ask.
NO_RULES = {"constants"}

Sections = dict[str, str]
Show = Callable[[str], Sections]


def rule_of(function: Callable) -> str:
    """The fixture file of a rule: the name of its module."""
    return function.__module__.rpartition(".")[2]


def _changed(script: str, before: str, after: str) -> Sections:
    return {"sql": script, "before": before, "after": UNCHANGED if before == after else after}


def _graph(rule: Callable, show: Callable[[OperatorGraph], str]) -> Show:
    """The operator graph before and after one of Hive's rules."""

    def shown(script: str) -> Sections:
        settings, sql = split_settings(script)
        try:
            return _changed(script, *hive.before_and_after(rule, sql.strip(), settings, show))
        except PlanError as error:
            return {"sql": script, "after": f"(rejected) {error}"}

    return shown


def _scans(graph: OperatorGraph) -> str:
    """The drawing, then the partitions of each scan."""
    lines = [draw(graph)]
    for scan in graph.scans:
        if scan.table is not None and scan.table.partition_columns:
            chosen = "all" if scan.partitions is None else ", ".join(scan.partitions) or "none"
            lines.append(f"partitions of {scan.alias}: {chosen}")
    return "\n".join(lines)


def _stages(patched: Callable[[], mock._patch]) -> Show:
    """The stages without and with one of Hive's rules."""

    def shown(script: str) -> Sections:
        settings, sql = split_settings(script)
        with patched():
            before = hive.stages(sql, **settings)
        return _changed(script, before, hive.stages(sql, **settings))

    return shown


def _without_task_rule(rule: Callable) -> Callable[[], mock._patch]:
    others = tuple(each for each in TASK_RULES if each is not rule)
    return lambda: mock.patch.object(compiler, "TASK_RULES", others)


def _without_fetch() -> mock._patch:
    return mock.patch.object(compiler, "only_fetches", lambda graph: False)


def _trees(script: str) -> Sections:
    """The operator trees before and after predicate pushdown."""
    return _changed(script, *pruning.before_and_after(push_down, script).split("\n-->\n"))


def _step(*names: str) -> Show:
    """The operator trees after predicate pushdown, without and with a step of it."""
    module = push_down.__module__

    def shown(script: str) -> Sections:
        with ExitStack() as without:
            for name in names:
                without.enter_context(mock.patch(f"{module}.{name}", lambda *_: ()))
            before = pruning.before_and_after(push_down, script)
        after = pruning.before_and_after(push_down, script)
        return _changed(script, *(trees.split("\n-->\n")[1] for trees in (before, after)))

    return shown


def _conditions(script: str) -> Sections:
    """The conditions of joins and filters before and after those that ORs imply are added."""
    return _changed(
        script,
        *(
            "\n".join(
                condition.text
                for tree in planned.trees
                for operator in walk(tree)
                if isinstance(operator, (Filter, Join))
                for condition in operator.conditions
            )
            for planned in pruning.around(add_implied, script)
        ),
    )


def _decided(text: str) -> str:
    """Decisions with each key query on a line of its own."""
    return text.replace(" by SELECT", "\n  by SELECT") or "(none)"


def _decisions(script: str) -> Sections:
    return {"before": script, "after": _decided(pruning.decisions(script))}


def _row_level(script: str) -> Sections:
    """The decisions without and with the rule."""
    others = tuple(rule for rule in RULES if rule is not drop_unusable_keys)
    with mock.patch("airflow_hive_opt.pruning.plan.RULES", others):
        before = pruning.decisions(script, pruning.LAKE)
    after = pruning.decisions(script, pruning.LAKE)
    return _changed(script, _decided(before), _decided(after))


def _predicates(script: str) -> Sections:
    return {"before": script, "after": _decided(pruning.key_predicates(script))}


def _metadata(script: str) -> Sections:
    """The key query of the rows, and that of the list of partitions."""
    before, after = pruning.keys_of_metadata(script).split("\n-->\n")
    return _changed(script, before, after or before)


def _surviving(script: str) -> Sections:
    """For each relation, the conditions that hold for it, and those that are dropped."""
    from_ = script.removeprefix("SELECT 1 FROM ")
    found = [
        f"{alias}\n  " + pruning.surviving(from_, alias).replace("\n", "\n  ")
        for alias in pruning.aliases(from_)
    ]
    return {"before": script, "after": "\n".join(found)}


def _rewriting(name: str) -> Show:
    """The statement after one rewriting, or the reason why not."""
    alone = tuple(each for each in REWRITINGS if each[0] == name)
    module = importlib.import_module("airflow_hive_opt.rewriting.rewrite")

    def shown(script: str) -> Sections:
        settings, sql = split_settings(script)
        with mock.patch.object(module, "RULES", alone):
            found = rewrite(sql, CATALOG, Settings.of({CORRELATION: "true", **settings}))
        reasons = "".join(f" {reason}: {reason.sentence}" for _, reason in found.refused)
        return {
            "before": script,
            "after": found.sql.strip() if found.applied else f"{UNCHANGED}{reasons}",
        }

    return shown


def _broadcasts(script: str) -> Sections:
    settings, sql = split_settings(script)
    after = with_broadcasts(sql, CATALOG, Settings.of(settings), THRESHOLD)
    return {"before": script, "after": UNCHANGED if after == sql else after.strip()}


def _eliminated(script: str) -> Sections:
    """The statement without the joins that the keys decide, if each key occurs once."""
    answered = [
        RedundantJoin(
            decision.scan,
            source.scan,
            tuple(
                (column.name, name)
                for column, name in zip_strict(source.columns, source.partition_columns)
            ),
            source.asked,
        )
        for decision in plan(script, CATALOG).decisions
        for source in decision.sources
        if source.scan and source.partition_columns
    ]
    edits, gone = eliminate_joins(blocks.Text(script, parse(script), CATALOG), answered, [])
    return {"before": script, "after": spliced(script, edits) if gone else UNCHANGED}


VIEWS = {"static_pruning": _scans, "join_order": hive.joins}
SHOWN: dict[str, Show] = {
    **{
        f"hive/{rule_of(rule)}": _graph(rule, VIEWS.get(rule_of(rule), draw))
        for rule in GRAPH_RULES
    },
    **{f"hive/{rule_of(rule)}": _stages(_without_task_rule(rule)) for rule in TASK_RULES},
    f"hive/{rule_of(only_fetches)}": _stages(_without_fetch),
    f"pruning/{rule_of(add_implied)}": _conditions,
    f"pruning/{rule_of(push_down)}": _trees,
    "pruning/transitive_conditions": _step("derived"),
    "pruning/into_subqueries": _step("into_select", "into_branch"),
    "pruning/partition_pruning": _decisions,
    "pruning/weakening": _surviving,
    "pruning/skeletons": _decisions,
    "pruning/key_sources": _decisions,
    "pruning/listed_partitions": _metadata,
    "pruning/row_level_keys": _row_level,
    "pruning/key_predicates": _predicates,
    **{f"rewriting/{rule_of(rule)}": _rewriting(name) for name, rule in REWRITINGS},
    "rewriting/join_below": _rewriting("self_join_window"),
    "rewriting/windowed_read": _rewriting("self_join_window"),
    "rewriting/broadcast_hints": _broadcasts,
    "rewriting/join_elimination": _eliminated,
}
