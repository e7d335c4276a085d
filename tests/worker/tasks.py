"""Operators as tasks run them, with the worker or with Spark for their local task."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from upath import UPath

from airflow_hive_opt.documents.descriptor import Descriptor, load
from airflow_hive_opt.documents.job import Job, Outcome, Stages, Status
from airflow_hive_opt.operators.local_task import LocalTaskOperator
from airflow_hive_opt.operators.map_join import MapJoinOperator
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.provider.connections import Deployment
from airflow_hive_opt.provider.worker import WorkerLocalTask
from airflow_hive_opt.spark.application.run import run_job
from tests.operators.test_split_form import Instance
from tests.spark.handed_over import map_join_of
from tests.spark.stages import job_of

HERE = Deployment("embedded")


@dataclass
class Tasks:
    """Tasks that write to ``folder``; ``session`` is Spark's on their metastore."""

    session: Any
    folder: Path
    tries: dict[str, Iterator[int]] = field(default_factory=dict)

    def context(self, task_id: str) -> dict[str, Any]:
        """The context of the task's next try."""
        instance = Instance(
            dag_id="d",
            run_id="r",
            task_id=task_id,
            map_index=-1,
            try_number=self.next_try(task_id),
            pushed={},
            id=task_id,
        )
        return {"ti": instance, "params": {}}

    def next_try(self, task_id: str) -> int:
        """The number of the task's next try."""
        return next(self.tries.setdefault(task_id, count(1)))

    def run(self, operator: type, sql: str, **options: Any) -> dict[str, Any]:
        """The operator's output, as XCom brings it to other tasks."""
        found = self.context(operator.__name__)
        task = self.made(operator, sql, **options)
        task.render_template_fields(found)
        return json.loads(json.dumps(task.execute(found)))

    def made(self, operator: type, sql: str, **options: Any) -> Any:
        """The operator with the connection to the metastore."""
        given = {"metastore_conn_id": "metastore", "descriptor_path": str(self.folder), **options}
        return operator(task_id=operator.__name__, sql=sql, **given)

    def prune(self, sql: str, local_task: str = "worker", **options: Any) -> dict[str, Any]:
        """The output of the local task alone."""
        return self.run(LocalTaskOperator, sql, local_task=local_task, **options)

    def join(self, sql: str, pruned: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        """The output of the map join alone."""
        return self.run(MapJoinOperator, sql, descriptor=pruned, **options)

    def both(self, sql: str, **options: Any) -> dict[str, Any]:
        """The output of both stages in one task."""
        return self.run(MapJoinPruneOperator, sql, **options)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What plain Spark answers, as it is now."""
        self.session._jsparkSession.sessionState().catalog().invalidateAllCachedTables()
        return sorted(map(tuple, self.session.sql(sql).collect()), key=repr)

    def write(self, *statements: str) -> None:
        """Runs statements on Spark."""
        for sql in statements:
            self.session.sql(sql)


def descriptor_of(pruned: Mapping[str, Any]) -> Descriptor:
    """The descriptor of a local task's output."""
    return load(UPath(pruned["uri"]))


def values_of(descriptor: Descriptor) -> list[tuple[str | None, ...]]:
    """The values of the partitions of the only scan that is pruned."""
    (target,) = descriptor.targets
    return sorted((partition.values for partition in target.partitions), key=repr)


@dataclass(frozen=True)
class Handed:
    """A worker's list, and the outcome of the map join that reads it."""

    descriptor: Descriptor
    outcome: Outcome

    @property
    def reader(self) -> str:
        """What has read the keys that the map join used."""
        return str((self.outcome.summary or {})["local_task"])

    @property
    def partitions_fetched(self) -> int:
        """The partitions that the statement fetched."""
        return int((self.outcome.summary or {})["work"]["map join"]["partitions_fetched"])


def hand_over(
    tasks: Tasks, sql: str, session: Any = None, between=(), conf=None, stages=None, **options: Any
) -> Handed:
    """The worker's list and its map join, whose rows are those of the plain statement.

    The map join runs in ``session``, after the statements ``between``. ``conf`` are the task's
    settings of Spark.
    """
    session = session or tasks.session
    job = worker_job(tasks, sql, **options)
    found = in_worker(job, **(conf or {}))
    tasks.write(*between)
    tasks.session._jsparkSession.sessionState().catalog().invalidateAllCachedTables()
    join = map_join_of(job, found)
    outcome = run_job(session, replace(join, stages=stages or join.stages))
    assert outcome.status is Status.DONE, outcome.message
    if sql.startswith("SELECT"):
        frame = session.sql(sql, args=dict(job.parameters))
        plain = sorted(tuple(map(_shown, row)) for row in frame.collect())
        assert sorted(outcome.rows) == plain
    return Handed(load(UPath(job.path)), outcome)


def worker_job(tasks: Tasks, sql: str, **options: Any) -> Job:
    """A local task, for one more attempt."""
    path = str(tasks.folder / str(tasks.next_try("job")) / "1.json")
    return job_of(sql, path=path, stages=Stages.LOCAL_TASK, show_rows=1_000, **options)


def in_worker(job: Job, **conf: str) -> Outcome:
    """The outcome of the local task in this process; fails if it is Spark's work."""
    found = WorkerLocalTask(job, "worker", HERE, conf, "metastore", None).job_or_outcome()
    assert isinstance(found, Outcome)
    return found


def _shown(value: Any) -> str:
    return "NULL" if value is None else str(value)
