"""``MapJoinPruneOperator``: prune and join in one task, in one Spark application."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseHook, BaseOperator, ObjectStoragePath
from airflow.sdk.configuration import conf as airflow_conf
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSkipException,
)

from airflow_hive_opt.attempts import attempt_path

if TYPE_CHECKING:
    from airflow.sdk import Context

_ON_EMPTY = ("run", "skip", "fail")
_ON_NO_PRUNE = ("run", "warn", "fail")


class MapJoinPruneOperator(BaseOperator):
    """Runs a star join on Spark and reads only the partitions that its small tables call for.

    Before the statement runs, the distinct keys of its small tables are collected, the metastore
    is asked which partitions of the big tables match, and each big table's scan is narrowed to
    them. The result is that of the statement as it stands; what can't be pruned is read whole,
    and the log says why.

    :param sql: a SELECT, INSERT or CREATE TABLE AS in HiveQL or Spark SQL, or the name of a
        ``.sql`` or ``.hql`` file. (templated)
    :param parameters: values for ``:name`` markers in the statement. (templated)
    :param conn_id: a ``spark`` connection whose master is ``local``; without one, an embedded
        local Spark runs on the warehouse of ``[hive_opt] warehouse``.
    :param conf: Spark settings. (templated)
    :param hive_conf: Hive settings, by Hive's names. (templated)
    :param descriptor_path: folder or object storage URI under which each attempt writes its
        partition descriptor; default ``[hive_opt] descriptor_path``. (templated)
    :param max_keys: with more distinct keys than this from one small table, its join prunes
        nothing.
    :param max_partitions: fail, before the join, if more partitions than this are to be read.
    :param max_bytes: fail, before the join, if the partitions to be read are larger than this.
    :param on_empty: what to do when the keys call for no partition of a table: ``run`` the
        statement, ``skip`` the task or ``fail`` it.
    :param on_no_prune: what to do when nothing could be pruned: ``run``, ``warn`` or ``fail``.

    The XCom it returns is a small dictionary: ``uri`` and ``digest`` of the descriptor, ``kept``
    and ``total`` partitions, ``reason``, decisions, seconds and metastore work by phase.
    """

    template_fields: Sequence[str] = (
        "sql",
        "parameters",
        "conf",
        "hive_conf",
        "descriptor_path",
    )
    template_ext: Sequence[str] = (".sql", ".hql")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        "sql": "sql",
        "parameters": "json",
        "conf": "json",
        "hive_conf": "json",
    }
    ui_color = "#f5e6b3"

    def __init__(
        self,
        *,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        conn_id: str | None = None,
        conf: Mapping[str, Any] | None = None,
        hive_conf: Mapping[str, Any] | None = None,
        descriptor_path: str | None = None,
        max_keys: int = 100_000,
        max_partitions: int | None = None,
        max_bytes: int | None = None,
        on_empty: str = "run",
        on_no_prune: str = "run",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if on_empty not in _ON_EMPTY:
            raise ValueError(f"on_empty must be one of {', '.join(_ON_EMPTY)}, not {on_empty!r}")
        if on_no_prune not in _ON_NO_PRUNE:
            raise ValueError(
                f"on_no_prune must be one of {', '.join(_ON_NO_PRUNE)}, not {on_no_prune!r}"
            )
        if max_keys < 1:
            raise ValueError(f"max_keys must be at least 1, not {max_keys}")
        for name, bound in (("max_partitions", max_partitions), ("max_bytes", max_bytes)):
            if bound is not None and bound < 0:
                raise ValueError(f"{name} can't be negative: {bound}")
        self.sql = sql
        self.parameters = parameters
        self.conn_id = conn_id
        self.conf = conf
        self.hive_conf = hive_conf
        self.descriptor_path = descriptor_path
        self.max_keys = max_keys
        self.max_partitions = max_partitions
        self.max_bytes = max_bytes
        self.on_empty = on_empty
        self.on_no_prune = on_no_prune

    def execute(self, context: Context) -> dict[str, object]:
        """Prunes, joins, and returns the summary that goes to XCom."""
        # Late, so that parsing a DAG file never loads PySpark.
        from pyspark.errors import PySparkException

        from airflow_hive_opt.planner.errors import PlanError
        from airflow_hive_opt.runtime.descriptor import DescriptorError
        from airflow_hive_opt.runtime.report import headline
        from airflow_hive_opt.spark import application
        from airflow_hive_opt.spark.java import SparkStartError
        from airflow_hive_opt.spark.session import spark_session
        from airflow_hive_opt.spark.words import in_words

        request = self._request()
        path = self._attempt_path(context)
        began = time.monotonic()
        try:
            with spark_session(self._application_name(context), self._spark_conf()) as session:
                self.log.info("Spark session ready after %.1f s", time.monotonic() - began)
                report = application.prune(session, request, path)
                result = application.join(session, request, report, path)
        except application.NothingToDo as nothing:
            raise AirflowSkipException(str(nothing)) from None
        except (PlanError, application.GateClosed) as error:
            raise AirflowFailException(str(error)) from None
        except (DescriptorError, SparkStartError) as error:
            raise AirflowException(str(error)) from None
        except PySparkException as error:
            raise AirflowException(in_words(error)) from None
        if result.columns:
            self.log.info("the first %d rows:", len(result.rows))
            for row in (result.columns, *result.rows):
                self.log.info("%s", "\t".join(map(str, row)))
        for phase, seconds in result.report.seconds.items():
            work = result.report.work[phase]
            self.log.info(
                "%s: %.1f s, %d metastore calls, %d partitions fetched, %d files listed",
                phase,
                seconds,
                work.metastore_calls,
                work.partitions_fetched,
                work.files_listed,
            )
        self.log.info("%s", headline(result.report.descriptor))
        return result.report.summary()

    def on_kill(self) -> None:
        """Ends this task's Spark."""
        from airflow_hive_opt.spark.session import kill_spark

        self.log.info("stopping Spark")
        kill_spark()

    def _request(self) -> Any:
        from airflow_hive_opt.spark.application import OnEmpty, OnNoPrune, Request

        return Request.of(
            self.sql,
            self.hive_conf,
            parameters=self.parameters or {},
            max_keys=self.max_keys,
            max_partitions=self.max_partitions,
            max_bytes=self.max_bytes,
            on_empty=OnEmpty(self.on_empty),
            on_no_prune=OnNoPrune(self.on_no_prune),
        )

    def _attempt_path(self, context: Context) -> ObjectStoragePath:
        root = self.descriptor_path or airflow_conf.get("hive_opt", "descriptor_path", fallback="")
        if not root:
            home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()
            root = str(home / "hive_opt_descriptors")
        try:
            return attempt_path(root, context)
        except (ValueError, ImportError) as error:
            raise AirflowFailException(f"descriptor_path {root!r} can't be used: {error}") from None

    def _application_name(self, context: Context) -> str:
        instance: Any = context["ti"]
        return f"airflow {instance.dag_id}.{instance.task_id} {instance.run_id}"

    def _spark_conf(self) -> dict[str, str]:
        from airflow_hive_opt.spark.session import default_warehouse, embedded_conf

        warehouse = airflow_conf.get("hive_opt", "warehouse", fallback="")
        base = embedded_conf(Path(warehouse) if warehouse else default_warehouse(), self._master())
        return {**base, **{key: str(value) for key, value in (self.conf or {}).items()}}

    def _master(self) -> str:
        if self.conn_id is None:
            return "local[*]"
        try:
            host = BaseHook.get_connection(self.conn_id).host or ""
        except AirflowNotFoundException:
            raise AirflowFailException(
                f"there is no connection {self.conn_id!r}: add it under Admin > Connections, or "
                "leave conn_id out for the embedded local Spark"
            ) from None
        if re.fullmatch(r"(local(\[.+\])?)?", host):
            return host or "local[*]"
        raise AirflowFailException(
            f"connection {self.conn_id!r} has the master {host!r}: this version runs on local "
            "masters only (local, local[N], local[*])"
        )
