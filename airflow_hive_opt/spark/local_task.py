"""The local task: keys, metastore, descriptor (HIVE-5119, execution, the local work)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.planner.identifiers import quote, quote_table
from airflow_hive_opt.planner.plan import Plan
from airflow_hive_opt.planner.pruning import ScanDecision
from airflow_hive_opt.planner.reasons import Reason
from airflow_hive_opt.runtime.descriptor import (
    Decision,
    Descriptor,
    SourceKeys,
    Target,
    now,
    query_digest,
)
from airflow_hive_opt.runtime.partitions import Partition, family, matching
from airflow_hive_opt.spark.catalog import SparkCatalog
from airflow_hive_opt.spark.keys import Keys, collect_keys, is_stable
from airflow_hive_opt.spark.literals import is_plain, tuples_condition
from airflow_hive_opt.spark.words import in_words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

# Above this many values in one filter an embedded Derby metastore overflows its stack (it does at
# about 600); names and local matching take over.
FILTER_VALUES = 400
_NAMES_VIEW = "__partition_names"


def run_local_task(
    session: SparkSession,
    catalog: SparkCatalog,
    plan: Plan,
    max_keys: int,
    parameters: Mapping[str, object] | None,
) -> Descriptor:
    """Collects the keys of every scan that may be pruned and asks the metastore what matches."""
    targets = []
    decisions = []
    for decision in plan.decisions:
        outcome = _outcome(session, catalog, decision, max_keys, parameters or {})
        if isinstance(outcome, Target):
            targets.append(outcome)
        reason = Reason.PRUNED if isinstance(outcome, Target) else outcome
        decisions.append(Decision(decision.alias, decision.table.name, reason, reason.sentence))
    return Descriptor(
        query_digest(plan.sql, parameters),
        now(),
        tuple(targets),
        tuple(decisions),
    )


def _outcome(
    session: SparkSession,
    catalog: SparkCatalog,
    decision: ScanDecision,
    max_keys: int,
    parameters: Mapping[str, object],
) -> Target | Reason:
    """The scan's target, or why it is read whole; a question that fails costs the pruning only."""
    if not decision.pruned:
        return decision.reason
    try:
        return _prune(session, catalog, decision, max_keys, parameters)
    except (PySparkException, Py4JJavaError) as error:
        text = in_words(error)
        log.warning("%s can't be pruned: %s", decision.alias, text)
        return Reason.KEY_SOURCE_FAILED


def _prune(
    session: SparkSession,
    catalog: SparkCatalog,
    decision: ScanDecision,
    max_keys: int,
    parameters: Mapping[str, object],
) -> Target | Reason:
    table, relation = decision.table, decision.relation
    if relation is None:
        return Reason.PASSED_THROUGH
    types = {column.name: column.type for column in table.partition_columns}
    usable: list[Keys] = []
    failure: Reason = Reason.KEY_TYPE_DIFFERS
    for source in decision.sources:
        source_types = [types[name] for name in source.partition_columns]
        keys = collect_keys(session, source, source_types, max_keys, parameters)
        if isinstance(keys, Reason):
            failure = keys
            log.info("%s: the keys of %s are not used, %s", decision.alias, source.name, keys)
        else:
            usable.append(keys)
    if not usable:
        return failure
    names = catalog.partition_names(table)
    return Target(
        alias=decision.alias,
        table=table.name,
        text=relation.text,
        aliased=relation.aliased,
        reference=(relation.reference.start, relation.reference.stop),
        columns=tuple(types),
        types=tuple(types.values()),
        pruned_columns=tuple(
            name for name in types if any(name in keys.source.partition_columns for keys in usable)
        ),
        partitions=tuple(_partitions(session, catalog, decision, usable, names, parameters)),
        total=len(names),
        sources=tuple(
            SourceKeys(keys.source.alias, keys.source.name, keys.source.sql, keys.count)
            for keys in usable
        ),
    )


def _partitions(
    session: SparkSession,
    catalog: SparkCatalog,
    decision: ScanDecision,
    usable: list[Keys],
    names: list[Partition],
    parameters: Mapping[str, object],
) -> list[Partition]:
    """The partitions that all keys and the statement's own predicates call for."""
    if any(not keys.tuples for keys in usable):
        return []
    static = _static_condition(session, decision, parameters)
    values = [value for keys in usable for row in keys.tuples for value in row]
    if len(values) <= FILTER_VALUES and all(map(is_plain, values)):
        conditions = [
            f"({tuples_condition(decision.alias, keys.source.partition_columns, keys.tuples)})"
            for keys in usable
        ]
        if static:
            conditions.append(static)
        return catalog.partitions_by_filter(
            decision.table, decision.alias, " AND ".join(conditions), parameters
        )
    columns = [column.name for column in decision.table.partition_columns]
    types = [column.type for column in decision.table.partition_columns]
    wanted = [
        ([columns.index(name) for name in keys.source.partition_columns], keys.tuples)
        for keys in usable
    ]
    found = list(matching(names, types, wanted))
    return _fulfilling(session, decision, static, found, parameters)


def _static_condition(
    session: SparkSession, decision: ScanDecision, parameters: Mapping[str, object]
) -> str:
    """The statement's own predicates on partition columns, unless they may change; else empty."""
    condition = " AND ".join(f"({text})" for text in decision.static_predicates)
    if not condition:
        return ""
    table = quote_table(decision.table.name)
    sql = f"SELECT 1 FROM {table} AS {quote(decision.alias)} WHERE {condition}"
    return condition if is_stable(session.sql(sql, args=dict(parameters))) else ""


def _fulfilling(
    session: SparkSession,
    decision: ScanDecision,
    condition: str,
    partitions: list[Partition],
    parameters: Mapping[str, object],
) -> list[Partition]:
    """Those partitions that fulfil ``condition``, as Spark evaluates it; all where it can't."""
    columns = decision.table.partition_columns
    # CHAR pads, TIMESTAMP knows time zones: a cast of the text is not what the scan gives
    if not condition or not partitions or any(family(column.type) is None for column in columns):
        return partitions
    texts = [f"__text_{number}" for number in range(len(columns))]
    rows = [(number, *partition.values) for number, partition in enumerate(partitions)]
    schema = ", ".join(["__row int", *(f"{text} string" for text in texts)])
    values = ", ".join(
        f"try_cast({text} AS {column.type}) AS {quote(column.name)}"
        for text, column in zip(texts, columns, strict=True)
    )
    # a text that is no value of its type is Spark's to judge when it scans
    odd = " OR ".join(
        f"({text} IS NOT NULL AND try_cast({text} AS {column.type}) IS NULL)"
        for text, column in zip(texts, columns, strict=True)
    )
    session.createDataFrame(rows, schema).createOrReplaceTempView(_NAMES_VIEW)
    try:
        sql = (
            f"SELECT __row FROM (SELECT __row, {odd} AS __odd, {values} FROM {_NAMES_VIEW}) "
            f"AS {quote(decision.alias)} WHERE ({condition}) OR __odd"
        )
        kept = session.sql(sql, args=dict(parameters)).collect()
    finally:
        session.catalog.dropTempView(_NAMES_VIEW)
    return [partitions[row["__row"]] for row in kept]
