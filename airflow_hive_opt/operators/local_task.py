"""``LocalTaskOperator``: the first task of the split form; writes the partition descriptor."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_hive_opt.documents.gates import Gates
from airflow_hive_opt.hooks.hive_metastore import spark_conf_of
from airflow_hive_opt.operators.arguments import (
    check_local_task,
    check_switches,
    given_switches,
    where_local_task_runs,
)
from airflow_hive_opt.operators.statement import StagesName, StatementOperator
from airflow_hive_opt.provider.airflow_compat import AirflowFailException, AirflowSkipException
from airflow_hive_opt.provider.attempts import default_root, key_sets_folder
from airflow_hive_opt.provider.earlier_runs import skipped_of
from airflow_hive_opt.provider.embedded import load_spark
from airflow_hive_opt.provider.glue import names_glue
from airflow_hive_opt.provider.submission import may_resume
from airflow_hive_opt.provider.without_stack import without_stack
from airflow_hive_opt.statement.arguments import check_whole_number

if TYPE_CHECKING:
    from airflow_hive_opt.documents.job import Job, Outcome
    from airflow_hive_opt.provider.airflow_compat import Context
    from airflow_hive_opt.provider.connections import Deployment
    from airflow_hive_opt.provider.embedded import Prepared

SWITCHES = (
    "partition_pruning",
    "key_predicate",
    "python_functions",
    "planning_seconds",
)
"""The arguments that are the planner's switches; all may be templates."""


class LocalTaskOperator(StatementOperator):
    """Finds the partitions that a star join needs and writes them to a descriptor; does not join.

    Returns the input of :class:`~airflow_hive_opt.operators.map_join.MapJoinOperator` as XCom: the
    descriptor's ``uri`` and ``digest``, the number of partitions ``kept`` of ``total``, the
    ``reason``, each scan's decision, seconds and metastore calls. Checks ``max_partitions``,
    ``max_bytes``, ``on_empty`` and ``on_no_prune`` before the join occupies a cluster.

    :param max_keys: maximum number of distinct keys of one small table. A small table with more
        keys prunes nothing. Default: 100,000.
    :param max_key_bytes: maximum size of all keys of one small table, in bytes. A small table
        prunes nothing if its keys are larger, or if one key is larger than 16 KiB. Default: 16 MiB.
    :param partition_pruning: if false, no scan is pruned. Default: true. (templated)
    :param key_predicate: if true, keys on data columns may skip row groups. Default: false.
        (templated)
    :param python_functions: if true, keys that depend on Python functions are used. Default: false.
        (templated)
    :param planning_seconds: processor seconds of planning after which the statement passes through
        to Spark. Default: 2. (templated)
    :param hold_snapshots: if true, the statement reads small Iceberg and Delta tables at the
        snapshots from which their keys come, also if the map join is another task and runs later.
        Default: it reads their current snapshots.
    :param key_sets: the key set that the task shares with others: a name, which all tasks and runs
        of the DAG know, or the path or URI of a folder. The task takes the keys of each key query
        from it, if another task has read them from the same tables, unchanged since, and reads the
        query in the same way. Else the task reads them, and the key set has them from then on.
        Default: none. (templated)
    :param local_task: where the local task runs. ``worker``: in the task's own process, without a
        JVM; if that is not possible, the task fails. ``spark``: on Spark. ``auto``: in the task's
        process if possible, else on Spark; the log says why. Default: ``[hive_opt] local_task``,
        else ``auto``.
    :param storage_conn_id: the connection for the small tables' files if the worker reads them.
        Default: none; then the storage's client finds credentials itself.
    :param prune_only: if true, the map join is skipped. May be a template that renders to ``true``
        or ``false``, for example from the trigger form. Its old name ``dry`` still works, with a
        ``DeprecationWarning``. (templated)
    :param for_other_runner: if true, the task also hands over the restricted statement, for a
        runner that does not know this package. The XCom ``restricted_sql`` has the statement,
        ``restricted_sql_guarded`` a list with statements before it that fail if the runner's
        session or the small tables differ, and ``partitions`` the partitions and keys. If one has
        more than 32 KiB, only its file has it; ``restricted_sql_uri``,
        ``restricted_sql_guarded_uri`` and ``partitions_uri`` name the files. ``prune_only`` then
        skips this task and the tasks after it. Only ``LocalTaskOperator`` accepts it. Default:
        false.

    For all other arguments, see :class:`~airflow_hive_opt.operators.statement.StatementOperator`.
    A local task alone returns no rows, so ``LocalTaskOperator`` raises ``TypeError`` for
    ``show_rows``.
    """

    stages: ClassVar[StagesName] = "local task"
    template_fields: Sequence[str] = (
        *StatementOperator.template_fields,
        "key_sets",
        "prune_only",
        *SWITCHES,
    )

    def __init__(
        self,
        *,
        sql: str,
        max_keys: int = 100_000,
        max_key_bytes: int = 16 << 20,
        partition_pruning: bool | str | None = None,
        key_predicate: bool | str | None = None,
        python_functions: bool | str | None = None,
        planning_seconds: int | str | None = None,
        hold_snapshots: bool = False,
        key_sets: str | None = None,
        local_task: str | None = None,
        storage_conn_id: str | None = None,
        prune_only: bool | str = False,
        dry: bool | str | None = None,
        for_other_runner: bool = False,
        **kwargs: Any,
    ) -> None:
        check_whole_number("max_keys", max_keys, 1)
        check_whole_number("max_key_bytes", max_key_bytes, 1)
        if not isinstance(hold_snapshots, bool):
            raise ValueError(f"hold_snapshots must be True or False, not {hold_snapshots!r}")
        if key_sets is not None and not (isinstance(key_sets, str) and key_sets.strip()):
            raise ValueError(f"key_sets must be a name or the path of a folder, not {key_sets!r}")
        check_local_task(local_task)
        if not isinstance(for_other_runner, bool):
            raise ValueError(f"for_other_runner must be True or False, not {for_other_runner!r}")
        if for_other_runner and self.stages != "local task":
            raise TypeError(
                "for_other_runner can't be set: this operator runs the statement itself. Set it at "
                "a LocalTaskOperator"
            )
        if for_other_runner and kwargs.get("parameters") is not None:
            raise TypeError(
                "parameters can't be set with for_other_runner: another runner does not bind them. "
                "Write the values into the statement, for example by a template"
            )
        if self.stages == "local task" and "show_rows" in kwargs:
            raise TypeError(
                "show_rows can't be set: a local task returns no rows. Set it at the map join"
            )
        super().__init__(sql=sql, **kwargs)
        self.max_keys = max_keys
        self.max_key_bytes = max_key_bytes
        self.partition_pruning = partition_pruning
        self.key_predicate = key_predicate
        self.python_functions = python_functions
        self.planning_seconds = planning_seconds
        check_switches(given_switches(self, SWITCHES))
        self.hold_snapshots = hold_snapshots
        self.key_sets = key_sets
        self.local_task = local_task
        self.storage_conn_id = storage_conn_id
        if dry is not None:
            warnings.warn("dry is now called prune_only", DeprecationWarning, stacklevel=3)
        self.prune_only = prune_only if dry is None else dry
        self.for_other_runner = for_other_runner

    def finish(self, context: Context, outcome: Outcome) -> Any:
        """Returns the descriptor's summary; see :meth:`StatementOperator.finish`."""
        only = self.only_prunes()
        summary = {**super().finish(context, outcome), "prune_only": only}
        if self.for_other_runner:
            if only:  # the tasks after this one know nothing of prune_only
                context["ti"].xcom_push(key="return_value", value=summary)
                raise AirflowSkipException("prune_only is true, so no other runner gets it")
            # late: other tasks don't need it
            from airflow_hive_opt.provider.other_runner import hand_over

            conf = {**spark_conf_of(self.metastore_conn_id), **(self.conf or {})}
            hand_over(context["ti"], self.sql, summary, names_glue(conf))
        return summary

    def job(self, context: Context, **fields: Any) -> Job:
        """See :meth:`StatementOperator.job`."""
        only = self.only_prunes()
        # gates, asset events and other tasks need the list itself, however long it is
        alone = self.stages == "both" and not only
        free = alone and self.gates() == Gates() and self.partition_keys_of is None
        job = super().job(
            context,
            max_keys=self.max_keys,
            max_key_bytes=self.max_key_bytes,
            switches=given_switches(self, SWITCHES),
            hold_snapshots=self.hold_snapshots,
            **(skipped_of(context) if free else {}),
            key_sets=self._key_sets_folder(context),
            **fields,
        )
        if self.for_other_runner and job.session_conf:
            named = ", ".join(job.session_conf)
            message = (
                f"the statement begins with SET {named}, which another runner does not get: set it "
                "in the conf of this task and at the runner"
            )
            raise without_stack(AirflowFailException(message))
        return job

    def _key_sets_folder(self, context: Context) -> str:
        """The URI of the key set's folder; empty for none."""
        if self.key_sets is None:
            return ""
        return key_sets_folder(self.key_sets, self.descriptor_path or default_root(), context)

    def prepared(self, context: Context, job: Job, place: Deployment) -> Prepared:
        """Starts the local task in this process; see :meth:`StatementOperator.prepared`."""
        choice = where_local_task_runs(self.local_task)
        if choice == "spark" or may_resume(self, job, context):
            return super().prepared(context, job, place)
        from airflow_hive_opt.provider.worker import WorkerLocalTask

        if place.kind == "embedded" and job.stages == "both":
            load_spark()
        task = WorkerLocalTask(
            job, choice, place, self.conf or {}, self.metastore_conn_id, self.storage_conn_id
        )
        return task.job_or_outcome

    def only_prunes(self) -> bool:
        """The rendered value of ``prune_only``; raises ``AirflowFailException``."""
        said = str(self.prune_only).strip().lower()
        if said not in ("true", "false"):
            raise AirflowFailException(f"prune_only must be true or false, not {self.prune_only!r}")
        return said == "true"
