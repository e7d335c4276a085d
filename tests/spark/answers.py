"""Runs a statement in three ways: pruned, plain, and with the partitions listed by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from upath import UPath

from airflow_hive_opt.documents.descriptor import Descriptor, Target, query_digest, read
from airflow_hive_opt.documents.report import Report
from airflow_hive_opt.restriction.restrict import restrict, ways_of
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.spark.local_task.data_columns import longest_list
from airflow_hive_opt.spark.map_join.prelaunch import prelaunch
from airflow_hive_opt.spark.session.partition_lookup import scanning
from airflow_hive_opt.spark.session.spark_compat import items
from tests.spark.stages import job_of, prune


@dataclass(frozen=True)
class Scanned:
    """What one statement read, nothing of it out of a cache."""

    partitions_fetched: int
    files_listed: int
    bytes_read: int
    rows_scanned: int


@dataclass(frozen=True)
class Answer:
    """Rows, sorted, and what was read for them; ``frame`` is the plain statement's."""

    rows: list[tuple]
    frame: DataFrame
    files: set[str]
    scanned: Scanned
    plain: Scanned
    descriptor: Descriptor
    report: Report

    @property
    def partitions_fetched(self) -> int:
        return self.scanned.partitions_fetched

    @property
    def target(self) -> Target:
        (target,) = self.descriptor.targets
        return target

    @property
    def kept(self) -> list[tuple]:
        return sorted((part.values for part in self.target.partitions), key=repr)

    @property
    def reasons(self) -> dict[str, str]:
        return {found.scan.alias: found.reason for found in self.descriptor.decisions}


def ask(
    spark,
    tmp_path: Path,
    sql: str,
    *,
    literal: str | None = None,
    parameters: Mapping[str, object] | None = None,
    **options,
) -> Answer:
    """The pruned result, after a comparison with the plain and the literal one.

    ``literal`` is the same statement with the expected partitions written in it. The pruned
    statement must not read more than it.
    """
    job = job_of(sql, parameters=dict(parameters or {}), **options)
    path = UPath(tmp_path) / "descriptor.json"
    report = prune(spark, job, path, hand_over=False)
    descriptor = read(path, query_digest(sql, job.parameters), report.descriptor.digest)
    targets = prelaunch(SparkCatalog(spark), descriptor, job.parameters)
    frames = []

    def run(text):
        frame = spark.sql(text, args=job.parameters)
        frames.append(frame)
        return frame

    ways = ways_of(targets, is_on_glue=False)
    narrowed = restrict(sql, targets, ways, descriptor.row_filters)

    places = {target.location for target in targets}
    longest = longest_list(descriptor.row_filters)
    with scanning(spark, set(ways.values()), places, longest):
        rows, scanned = _measured(spark, lambda: run(narrowed))
        if report.fewer_joins:  # what runs in the local task's own application
            without, with_fewer = _measured(spark, lambda: run(report.fewer_joins.text))
            assert without == rows
            assert frames[0].dtypes == frames[1].dtypes
            assert with_fewer.rows_scanned <= scanned.rows_scanned
            assert with_fewer.files_listed <= scanned.files_listed
            assert with_fewer.partitions_fetched <= scanned.partitions_fetched
    plain_rows, plain = _measured(spark, lambda: run(sql))
    assert rows == plain_rows
    if literal is not None:
        listed, by_list = _measured(spark, lambda: spark.sql(literal, args=job.parameters))
        assert listed == plain_rows
        assert scanned.partitions_fetched <= by_list.partitions_fetched
        assert scanned.files_listed <= by_list.files_listed
        # a range by hand may prune some of a small table too
        assert scanned.bytes_read <= 1.1 * by_list.bytes_read
    files = set(frames[0].inputFiles())
    return Answer(rows, frames[-1], files, scanned, plain, descriptor, report)


def _measured(spark, make_frame) -> tuple[list[tuple], Scanned]:
    spark._jvm.org.apache.spark.sql.execution.datasources.FileStatusCache.resetForTesting()
    spark._jsparkSession.sessionState().catalog().invalidateAllCachedTables()
    catalog = SparkCatalog(spark)
    before, bytes_before = catalog.work(), _bytes_read(spark)
    frame = make_frame()
    rows = _sorted(frame)
    work = catalog.work() - before
    read_bytes = _bytes_read(spark) - bytes_before
    scanned = sum(_rows_scanned(frame._jdf.queryExecution().executedPlan()))
    return rows, Scanned(work.partitions_fetched, work.files_listed, read_bytes, scanned)


def _rows_scanned(plan) -> Iterator[int]:
    """The rows that each scan of files gave; only the parts of the plan that have run."""
    if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        yield from _rows_scanned(plan.executedPlan())
    elif plan.getClass().getSimpleName().endswith("QueryStageExec"):
        yield from _rows_scanned(plan.plan())
    elif plan.nodeName().startswith("Scan "):
        yield plan.metrics().get("numOutputRows").get().value()
    children = plan.children()
    for number in range(children.size()):
        yield from _rows_scanned(children.apply(number))


def _bytes_read(spark) -> int:
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    executors = items(context.statusStore().executorList(False))
    return sum(executor.totalInputBytes() for executor in executors)


def files_of(answer: Answer, table: str) -> int:
    """How many of the table's files the pruned statement reads."""
    return sum(f"/{table}/" in name for name in answer.files)


def _sorted(frame) -> list[tuple]:
    return sorted(map(tuple, frame.collect()), key=repr)
