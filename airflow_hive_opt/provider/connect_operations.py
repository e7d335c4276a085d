"""The statement that a task has begun on a Spark Connect server, and the retry that finds it there.

A record of the statement is stored before it begins, see ``operation_record``. It is deleted when
the statement has failed. The attempt that finds a record begins nothing before that statement has
ended, and nothing at all if it has succeeded, or if nobody knows whether it has written. An attempt
that has waited for the statement in the triggerer finds the record too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.operators.arguments import NOT_DEFERRED
from airflow_hive_opt.provider.airflow_compat import AirflowException
from airflow_hive_opt.provider.attempts import cause_of
from airflow_hive_opt.provider.earlier_statement import (
    check_left_files,
    check_other_server,
    check_unreadable,
    check_written,
    counted,
    ending_if_unknown,
    failed_outcome,
    interrupt,
    no_record,
    not_ended,
    release_session,
    stopped,
    warn_of_other_work,
)
from airflow_hive_opt.provider.operation_record import OperationRecord, UnreadableRecord
from airflow_hive_opt.provider.outcome import masked
from airflow_hive_opt.provider.overwritten_partition import empty_overwritten, has_overwritten
from airflow_hive_opt.provider.without_stack import without_stack
from airflow_hive_opt.restriction.row_changes import SOURCE_CHANGED

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

    from airflow_hive_opt.documents.job import Job, Outcome
    from airflow_hive_opt.documents.remote_operation import (
        OperationId,
        OverwrittenPartition,
        RemoteOperation,
        ServerProcess,
    )
    from airflow_hive_opt.documents.storage import StoragePath
    from airflow_hive_opt.provider.airflow_compat import Context
    from airflow_hive_opt.spark.session.operation_protocol import Ending

log = logging.getLogger(__name__)

SECONDS_IN_WORKER = 5.0
"""How long a worker waits for a statement before it leaves it to the triggerer, in seconds."""

_PATIENCE = 4.0  # seconds: Airflow kills a task that is being stopped after 5
_SECONDS_TO_END = 60.0  # of a statement that was interrupted


class ConnectOperations:
    """The record of one task instance; each attempt makes its own object.

    ``path`` is the attempt's, ``url`` the server's, and ``conf`` are the settings of the job's
    session. ``defers`` says that the attempt leaves a statement that takes long to the triggerer.
    """

    def __init__(
        self, context: Context, path: StoragePath, url: str, conf: Mapping[str, str], defers: bool
    ) -> None:
        from airflow_hive_opt.spark.session.connect import server_of

        self._record = OperationRecord(context, path)
        self._url, self._server = url, server_of(url)
        self._attempt = int(context["ti"].try_number)
        self._cause = cause_of(context)
        self._work, self._conf = "", conf
        self._has_overwritten = partial(has_overwritten, url=url, conf=conf)
        self._defers = defers
        self._is_stopped = False
        self._waits_for: OperationId | None = None  # not one that this process has begun
        self._own: RemoteOperation | None = None

    def outcome_of_earlier(self, job: Job) -> Outcome | None:
        """Waits until what an earlier attempt has begun has ended.

        Returns its outcome if it has done the job, so that this attempt has nothing to do. An
        operation that does other work is interrupted, and so is one of a task that somebody has
        cleared. Raises ``AirflowException`` if the server does not say that it has ended, if it has
        left files that this attempt would add, or if this attempt is stopped. Raises
        ``AirflowFailException`` if nobody knows whether it has written, or if the connection names
        another server now. Raises ``LeftRunning`` if it runs and the triggerer can wait for it.
        """
        self._work = job.digest_with(self._conf)
        try:
            found = self._record.read()
        except UnreadableRecord as error:
            check_unreadable(error, self._cause)
            self._record.delete()
            return None
        if found is None:
            return None
        same = (found.work, found.cause) == (self._work, self._cause)
        is_same = same and found.attempt < self._attempt
        is_retry = found.cause == self._cause
        given = found, self._url, job, self._conf, is_retry
        if found.server != self._server and not found.has_ended:
            check_other_server(found, self._server, self._cause)
            check_left_files(*given)
            self._record.forget(found)
            return None
        ending, _ = self._ended(found, follow=is_same)
        if is_same and ending == "succeeded":
            return self._adopted(found)
        if ending == "unknown":
            ending = self._if_unknown(found)
        if is_same and ending == "unclear" and self._has_overwritten(found):
            return self._adopted(replace(found, before=None))  # nothing to empty
        if is_retry and found.work != self._work:
            warn_of_other_work(found, ending)
        if ending != "unknown":
            self._forget(found, ending)
        self._release(found)  # before a look, or a client that still lives may begin it again
        if ending == "unclear" and found.work == self._work:
            check_written(*given)
        if ending in ("unclear", "unknown"):
            check_left_files(*given)
            self._record.forget(found)
        self.raise_if_stopped()
        return None

    def outcome_after_wait(
        self, waited_for: OperationId, event: Mapping[str, Any]
    ) -> Outcome | None:
        """The outcome of an operation for which the triggerer has waited; ``event`` is its event.

        Returns ``None`` if the attempt has its work still to do: the operation never began, or an
        earlier attempt's has failed. Raises what :meth:`outcome_of_earlier` raises.
        """
        from airflow_hive_opt.spark.session.operation_protocol import MAY_HAVE_WRITTEN

        found = self._record.read()
        if found is None or found.id != waited_for:
            raise no_record(self._server)
        how = event["how"]
        if found.server != self._server and not (how == "succeeded" or found.has_ended):
            check_other_server(found, self._server, self._cause)
            self._record.forget(found)
            return None
        ending, failure = self._ended(found, how != "late", how == "succeeded")
        if ending == "succeeded":
            return self._adopted(found)
        if event.get("condition") in MAY_HAVE_WRITTEN:
            ending = "unclear"
        has_failed = how == "failed" or event.get("condition")  # as the triggerer has still read
        if ending == "unknown" and not has_failed:
            ending = self._if_unknown(found)
        if ending == "unclear" and how != "late" and self._has_overwritten(found):
            return self._adopted(replace(found, before=None))
        self._forget(found, ending)
        self._release(found)
        self.raise_if_stopped()
        if ending == "not begun" or (found.attempt < self._attempt and how != "late"):
            return None
        return failed_outcome(found.outcome, failure, event)

    def begins(
        self,
        process: ServerProcess,
        found: OperationId,
        outcome: Outcome,
        before: OverwrittenPartition | None = None,
    ) -> float | None:
        """Stores an operation before it begins in ``process``; ``outcome`` is that of a success.

        ``before`` is a partition that is looked at then. Returns after how many seconds this
        process leaves it to the triggerer; ``None``: it waits itself. Raises ``DescriptorError``,
        also if another attempt has begun an operation meanwhile, and ``AirflowException`` if this
        attempt is stopped.
        """
        from airflow_hive_opt.documents.remote_operation import RemoteOperation

        self.raise_if_stopped()
        other = self._record.read()
        if other is not None and other.id.session != found.session:
            raise DescriptorError(
                f"try {other.attempt} of this task has begun a statement meanwhile, so this one "
                "does not begin"
            )
        who = (self._attempt, time.time(), self._work, self._cause)
        # Airflow's pages show the record.
        done = replace(outcome, statement=outcome.statement and masked(outcome.statement))
        record = RemoteOperation(self._server, found, *who, done, process, before=before)
        self._record.write(record)
        self._own = record
        if self._is_stopped:  # by the handler of SIGTERM, meanwhile: the server gets no request
            self._own = None
            self._record.forget(record)
            self.raise_if_stopped()
        if self._defers and SOURCE_CHANGED in (outcome.statement or ""):
            log.info(NOT_DEFERRED, "the statement may have to run again without its keys")
            return None
        return SECONDS_IN_WORKER if self._defers else None

    def mark_stopped(self) -> None:
        """Lets no operation of this attempt begin any more."""
        self._is_stopped = True

    def raise_if_stopped(self) -> None:
        """Raises ``AirflowException`` after :meth:`mark_stopped`.

        Airflow's handler of SIGTERM only calls ``on_kill``: the task goes on after it.
        """
        if self._is_stopped:
            raise without_stack(AirflowException("the task was stopped, so no statement begins"))

    def may_run(self) -> bool:
        """Whether a statement of this attempt may still run."""
        return self._own is not None

    def settled(self, run: Callable[[], Outcome]) -> Outcome:
        """What ``run`` returns; if it fails, stops the statement.

        Returns the outcome of a statement that has succeeded although ``run`` failed.
        """
        from airflow_hive_opt.documents.job import Status
        from airflow_hive_opt.spark.session.left_running import LeftRunning

        try:
            outcome = run()
        except LeftRunning:
            raise
        except BaseException:
            self.stop_own()
            raise
        own = self._own
        if outcome.status is Status.DONE:
            if own is not None:
                self._finish(replace(own, outcome=outcome), "succeeded")
            return outcome
        if self.stop_own(outcome.message) == "succeeded" and own is not None:
            log.warning("the statement has succeeded on the server, but then: %s", outcome.message)
            empty_overwritten(own, self._url, self._conf)
            return own.outcome
        return outcome

    def stop(self) -> None:
        """Interrupts the operation for which this attempt waits, if it waits for one."""
        if (found := self._waits_for) is not None:
            interrupt(self._url, found, _PATIENCE)

    def stop_own(self, message: str = "") -> Ending | None:
        """Interrupts this attempt's operation and waits some seconds for its end.

        Returns ``None`` if it may still run, or if there is none, see :meth:`may_run`. The record
        stays unless it has failed or never began; ``message`` is that of this attempt's error.
        """
        if (own := self._own) is None:
            return None
        ending = stopped(own, self._url, message, _PATIENCE)
        if ending is not None:
            self._finish(own, ending)
        return ending

    def _ended(
        self, found: RemoteOperation, follow: bool, has_succeeded: bool = False
    ) -> tuple[str, PySparkException | None]:
        """How an operation has ended, and the error of one that has failed.

        If it runs, waits for its end. Unless this attempt is to ``follow`` it, interrupts it and
        waits for a minute. A deferrable attempt follows it for some seconds, and then raises
        ``LeftRunning``.
        """
        if has_succeeded or found.has_succeeded:
            log.info("the statement of try %d has succeeded", found.attempt)
            return "succeeded", None
        if found.may_have_written:
            return "unclear", None
        from airflow_hive_opt.spark.session.connect_operation import NotEnded, left_operation
        from airflow_hive_opt.spark.session.left_running import LeftRunning

        if found.attempt < self._attempt or not follow:
            log.info(
                "try %d of this task has begun a statement on %s that may still run: this try %s",
                found.attempt,
                found.server,
                "waits until it has ended" if follow else "interrupts it",
            )
        waits = SECONDS_IN_WORKER if self._defers else None
        patience = waits if follow else _SECONDS_TO_END
        try:
            with left_operation(self._url, found.id, patience) as left:
                # Not sooner: what a handler needs is imported now. Its thread would wait for this
                # one to end an import, and this one waits for the handler.
                self._waits_for = found.id
                if self._is_stopped or not follow:
                    left.interrupt()
                ending = counted(left.ending(), found)
            self._waits_for = None
            told = "it may have written" if ending == "unclear" else ending
            log.info("the statement that try %d has begun has ended: %s", found.attempt, told)
            return ending, left.failure
        except NotEnded as error:
            if follow and self._defers:
                log.info("the triggerer waits for it: %s", error)
                raise LeftRunning(found.id) from None
            raise not_ended(found, error) from None
        except BaseException:  # such as a timeout, after which Airflow's on_kill comes too late
            interrupt(self._url, found.id, _PATIENCE)
            raise

    def _if_unknown(self, found: RemoteOperation) -> Ending:
        given = self._url, self._cause, self.raise_if_stopped, self._has_overwritten
        return ending_if_unknown(found, *given)

    def _adopted(self, found: RemoteOperation) -> Outcome:
        """The outcome of an operation that has succeeded; raises ``AirflowException``."""
        if not found.has_succeeded:
            self._finish(found, "succeeded")
            self._release(found)
        empty_overwritten(found, self._url, self._conf)
        return found.outcome

    def _release(self, found: RemoteOperation) -> None:
        """Ends the operation's session, once the record says all that the server would tell."""
        if found.server == self._server:
            release_session(self._url, found.id, _PATIENCE)

    def _forget(self, ended: RemoteOperation, ending: str) -> None:
        """Deletes the record, unless the next attempt must look whether it has written."""
        if ending == "unclear":
            self._record.replace(ended, replace(ended, may_have_written=True))
        else:
            self._record.forget(ended)

    def _finish(self, ended: RemoteOperation, ending: str) -> None:
        """Stores that an operation has ended; an error is only logged, as it may have written."""
        self._own = None
        try:
            if ending == "succeeded":
                self._record.write(replace(ended, has_succeeded=True))
            elif ending != "unknown":
                self._forget(ended, ending)
        except Exception as error:  # noqa: BLE001 - whatever it is
            log.warning("it can't be stored that the statement has ended: %s", error)
