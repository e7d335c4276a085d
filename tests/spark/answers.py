"""Three answers to one question: pruned, plain, and with the partitions listed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from upath import UPath

from airflow_hive_opt.runtime.descriptor import Descriptor, Target, query_digest, read
from airflow_hive_opt.runtime.report import Report
from airflow_hive_opt.spark.application import Request, prune
from airflow_hive_opt.spark.catalog import SparkCatalog
from airflow_hive_opt.spark.map_join import prelaunch, run_map_join
from airflow_hive_opt.spark.restrict import scan_way
from airflow_hive_opt.spark.scan import scanning


@dataclass(frozen=True)
class Answer:
    """Rows, sorted, and what was read for them."""

    rows: list[tuple]
    files: set[str]
    partitions_fetched: int
    descriptor: Descriptor
    report: Report

    @property
    def target(self) -> Target:
        (target,) = self.descriptor.targets
        return target

    @property
    def kept(self) -> list[tuple]:
        return sorted((part.values for part in self.target.partitions), key=repr)

    @property
    def reasons(self) -> dict[str, str]:
        return {found.alias: found.reason for found in self.descriptor.decisions}


def ask(
    spark,
    tmp_path: Path,
    sql: str,
    *,
    literal: str | None = None,
    parameters: Mapping[str, object] | None = None,
    **options,
) -> Answer:
    """The pruned answer, after comparing it with the plain and the literal one.

    ``literal`` is the same statement with the partitions that ought to be read written in.
    """
    request = Request(sql, parameters=parameters or {}, **options)
    path = UPath(tmp_path) / "descriptor.json"
    report = prune(spark, request, path)
    descriptor = read(path, query_digest(sql, request.parameters), report.descriptor.digest)
    catalog = SparkCatalog(spark)
    targets = prelaunch(catalog, descriptor, request.parameters)
    before = catalog.work()
    with scanning(spark, set(map(scan_way, targets))):
        frame, objection = run_map_join(spark, sql, targets, request.parameters)
        assert objection is None
        rows = _sorted(frame)
    fetched = (catalog.work() - before).partitions_fetched
    plain = _sorted(spark.sql(sql, args=dict(request.parameters)))
    assert rows == plain
    if literal is not None:
        assert _sorted(spark.sql(literal, args=dict(request.parameters))) == plain
    return Answer(rows, set(frame.inputFiles()), fetched, descriptor, report)


def files_of(answer: Answer, table: str) -> int:
    """How many of the table's files the pruned statement reads."""
    return sum(f"/{table}/" in name for name in answer.files)


def _sorted(frame) -> list[tuple]:
    return sorted(map(tuple, frame.collect()), key=repr)
