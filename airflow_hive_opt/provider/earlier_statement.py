"""What an attempt makes of an earlier statement on a Spark Connect server.

If nobody knows how it has ended, a retry fails. A task that somebody has cleared goes on with a
warning: whoever has cleared it can look at the table. Nobody sees there the files that the next
statement would add, so they stop this task too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.provider.airflow_compat import AirflowException, AirflowFailException
from airflow_hive_opt.provider.without_stack import without_stack

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from airflow_hive_opt.documents.job import Job, Outcome
    from airflow_hive_opt.documents.remote_operation import OperationId, RemoteOperation
    from airflow_hive_opt.provider.operation_record import UnreadableRecord
    from airflow_hive_opt.spark.session.operation_protocol import Ending

log = logging.getLogger(__name__)


def interrupt(url: str, found: OperationId, seconds: float) -> None:
    """Interrupts the operation ``found`` in so many seconds at most; an error is only logged."""
    from airflow_hive_opt.spark.session.connect_operation import NotEnded, left_operation

    try:
        with left_operation(url, found, seconds) as left:
            left.interrupt()
    except NotEnded as error:
        log.warning("the statement of an earlier attempt can't be stopped: %s", error)


def stopped(own: RemoteOperation, url: str, message: str, seconds: float) -> Ending | None:
    """Interrupts this attempt's operation and waits some ``seconds``; returns how it has ended.

    ``None`` if it may still run. ``message`` is that of the attempt's error.
    """
    from airflow_hive_opt.spark.session import operation_protocol as protocol
    from airflow_hive_opt.spark.session.connect_operation import NotEnded, left_operation

    try:
        with left_operation(url, own.id, seconds) as left:
            left.interrupt()
            ending = counted(left.ending(), own)
            if ending == "not begun":
                left.release_session()  # or it might still reach the server, and begin
                if protocol.condition_in(message) == protocol.ORPHANED:  # as it says once
                    ending = protocol.Ending.UNCLEAR
    except NotEnded as error:
        log.warning(
            "the statement may still run on the Spark Connect server %s (%s); the next "
            "attempt waits for it",
            own.server,
            error,
        )
        return None
    return ending


def release_session(url: str, found: OperationId, seconds: float) -> None:
    """Ends the operation's session in so many seconds at most; an error is only logged."""
    from airflow_hive_opt.spark.session.connect_operation import left_operation

    with left_operation(url, found, seconds) as left:
        left.release_session()


def no_record(server: str) -> AirflowFailException:
    """The error of a task that has waited for a statement whose record is gone."""
    message = (
        "there is no record any more of the statement that this task has waited for on the Spark "
        f"Connect server {server}: it may have written. Look at the table, then clear the task to "
        "run the statement again"
    )
    return without_stack(AirflowFailException(message))


def not_ended(found: RemoteOperation, why: Exception) -> AirflowException:
    """The error of an attempt that does not hear that the operation has ended."""
    message = (
        f"try {found.attempt} of this task has begun a statement on the Spark Connect server "
        f"{found.server}, and nothing shows that it has ended: {why}"
    )
    return without_stack(AirflowException(message))


def counted(ending: Ending, found: RemoteOperation) -> Ending:
    """The ending, which is unclear for a failure of a statement that commits in several steps."""
    from airflow_hive_opt.spark.session.operation_protocol import Ending
    from airflow_hive_opt.statement.added_rows import commits_in_steps

    if ending is Ending.FAILED and commits_in_steps(found.outcome.statement or ""):
        return Ending.UNCLEAR
    return ending


def ending_if_unknown(
    found: RemoteOperation,
    url: str,
    cause: str,
    check: Callable[[], None],
    has_written: Callable[[RemoteOperation], bool],
) -> Ending:
    """How an operation has ended that the server at ``url`` does not know.

    ``unclear`` if the server was started again, so that the operation runs no more, or if it
    ``has_written`` all its rows. Else raises ``AirflowFailException`` for a retry, and returns
    ``unknown`` for a task that was cleared. ``check`` is called while this waits. Raises
    ``AirflowException`` if the server fails.
    """
    from airflow_hive_opt.spark.session.operation_protocol import Ending

    if _was_started_again(found, url, check):
        log.info("the server was started again since, so that statement runs no more")
        return Ending.UNCLEAR
    message = (
        f"the server {found.server} does not know how the statement that try {found.attempt} "
        "of this task has begun has ended: it may have written, and may even still run"
    )
    if found.cause == cause:
        if has_written(found):
            return Ending.UNCLEAR
        why = (
            "Make sure that it does not run any more and look at the table, then clear the task to "
            "run the statement again"
        )
        raise without_stack(AirflowFailException(f"{message}. {why}"))
    log.warning("%s. If it adds rows, look for rows that are there twice", message)
    return Ending.UNKNOWN


def _was_started_again(found: RemoteOperation, url: str, check: Callable[[], None]) -> bool:
    from pyspark.errors import PySparkException

    from airflow_hive_opt.documents.error_text import in_words
    from airflow_hive_opt.spark.session.connect import remote_session
    from airflow_hive_opt.spark.session.server_process import has_ended

    if not found.process.address:
        return False
    with remote_session(url, {}) as session:
        try:
            return has_ended(found.process, session, found.server, check)
        except PySparkException as error:
            message = (
                f"the server {found.server} does not know the statement that try {found.attempt} "
                "of this task has begun, and did not tell whether it was started again since: "
                f"{in_words(error)}. The next try asks again"
            )
            raise without_stack(AirflowException(message)) from None


def check_written(
    found: RemoteOperation, url: str, job: Job, conf: Mapping[str, str], is_retry: bool
) -> None:
    """It has not succeeded, and has ended: raises ``AirflowFailException`` if it may have written.

    ``job`` has the same statement, ``url`` and ``conf`` are those of its session. If the attempt is
    not a retry but was cleared, this only warns. Raises ``AirflowException`` if the server fails.
    """
    from airflow_hive_opt.spark.application.written_since import why_it_may_have_written

    why = _asked(why_it_may_have_written, found, url, job, conf, is_retry)
    if why is None:
        log.info("a second run repeats no row of the statement of try %d", found.attempt)
        return
    message = (
        f"the statement of try {found.attempt} of this task has not succeeded on {found.server}, "
        f"and it may have written all or some of its rows: {why}"
    )
    if is_retry:
        way_out = "Look at the table, then clear the task to run the statement again"
        raise without_stack(AirflowFailException(f"{message}. {way_out}"))
    log.warning("%s. Look for rows that are there twice", message)


def check_left_files(
    found: RemoteOperation, url: str, job: Job, conf: Mapping[str, str], is_retry: bool
) -> None:
    """Raises ``AirflowException`` if it may have left files that the statement of ``job`` adds.

    See :func:`check_written`.
    """
    from airflow_hive_opt.spark.application.written_since import left_files

    if (folder := _asked(left_files, found, url, job, conf, is_retry)) is None:
        return
    message = (
        f"{folder} has files that this statement would add to the table. They are those of the "
        f"statement of try {found.attempt} of this task, or those of another job. Once none of "
        "these runs any more, delete the folder. The next try looks again"
    )
    raise without_stack(AirflowException(message))


def _asked(
    look: Callable[[SparkSession, str, float], str | None],
    found: RemoteOperation,
    url: str,
    job: Job,
    conf: Mapping[str, str],
    is_retry: bool,
) -> str | None:
    """What a look at the tables of the statement of ``job`` finds."""
    from pyspark.errors import PySparkException

    from airflow_hive_opt.documents.error_text import in_words
    from airflow_hive_opt.spark.session.connect import remote_session

    with remote_session(url, {**conf, **job.session_conf}) as session:
        try:
            return look(session, job.statement, found.began)
        except PySparkException as error:
            message = (
                f"the statement of try {found.attempt} of this task is not known to have "
                f"succeeded, and nothing shows whether it has written: {in_words(error)}"
            )
            if is_retry:
                raise without_stack(AirflowException(message)) from None
            log.warning("%s. If it adds rows, look for rows that are there twice", message)
            return None


def check_other_server(found: RemoteOperation, now: str, cause: str) -> None:
    """It is on another server than ``now``; raises ``AirflowFailException`` for a retry."""
    message = (
        f"try {found.attempt} of this task has begun a statement on the Spark Connect server "
        f"{found.server}, but the connection names {now} now"
    )
    if found.cause == cause:
        why = "a statement beside it may double rows. Clear the task once that one has ended"
        raise without_stack(AirflowFailException(f"{message}: {why}"))
    log.warning("%s. Nothing shows whether that one has ended", message)


def check_unreadable(error: UnreadableRecord, cause: str) -> None:
    """Its record can't be read; raises ``error`` unless it shows that the task was cleared."""
    if error.cause in (None, cause):
        raise error
    log.warning("%s. If it adds rows, look for rows that are there twice", error)


def warn_of_other_work(found: RemoteOperation, ending: str) -> None:
    """The retry runs another statement than the one that has ended so."""
    if ending in ("succeeded", "unclear"):
        log.warning(
            "the statement of try %d %s, but this try has another statement, other parameters or "
            "other settings, so it runs too. If it adds rows, both have added theirs",
            found.attempt,
            "has succeeded" if ending == "succeeded" else "may have written",
        )


def failed_outcome(
    outcome: Outcome, failure: PySparkException | None, event: Mapping[str, Any]
) -> Outcome:
    """The outcome of a statement that has failed, as a task that has waited itself has it.

    ``outcome`` is that of a success. If the server does not tell the ``failure``, the triggerer's
    ``event`` may know something of it.
    """
    from airflow_hive_opt.documents.error_text import in_words
    from airflow_hive_opt.documents.job import Outcome, Status
    from airflow_hive_opt.spark.session.operation_protocol import UNCLEAR
    from airflow_hive_opt.spark.session.statement_errors import is_refusal

    if failure is not None:
        is_refused, words = is_refusal(failure), in_words(failure)
    else:
        is_refused = bool(event.get("is_refused"))
        condition = event.get("condition")
        told = f" with [{condition}]" if condition and condition != UNCLEAR else ""
        words = f"the statement has failed on the server{told}, which does not say more"
        if event["how"] == "ended" and not told:
            words = (
                "the server was started again, or does not tell any more how the statement has "
                "ended. The next try looks whether it has written"
            )
    return Outcome(Status.REFUSED if is_refused else Status.FAILED, words, outcome.summary)
