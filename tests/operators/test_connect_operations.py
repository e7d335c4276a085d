"""What an attempt does with an earlier statement, by each answer that a server or a proxy gives."""

from __future__ import annotations

import json
import logging
import time
from contextlib import nullcontext
from dataclasses import replace
from datetime import date
from threading import Lock, Timer
from types import SimpleNamespace

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from packaging.version import Version
from pyspark.errors import PySparkException

from tests.versions.installed import SPARK

if Version("4.0") > SPARK:
    pytest.skip("Spark Connect needs PySpark 4.0", allow_module_level=True)

from airflow_hive_opt.documents.job import Job, Outcome, Status
from airflow_hive_opt.documents.remote_operation import REMOTE_OPERATION, OperationId, ServerProcess
from airflow_hive_opt.provider import connect_operations
from airflow_hive_opt.provider.airflow_compat import mask_secret
from airflow_hive_opt.provider.connect_deferral import connected
from airflow_hive_opt.provider.connect_operations import SECONDS_IN_WORKER, ConnectOperations
from airflow_hive_opt.provider.operation_record import OperationRecord
from airflow_hive_opt.restriction.row_changes import SOURCE_CHANGED
from airflow_hive_opt.spark.application import written_since
from airflow_hive_opt.spark.session import connect, connect_operation, server_process
from airflow_hive_opt.spark.session.connect_operation import Ending, NotEnded, left_operation
from airflow_hive_opt.spark.session.left_running import LeftRunning
from tests.operators.connect_attempt import Store, context, record_of
from tests.services.answering_connect import (
    answering,
    hangs,
    in_turn,
    is_cut,
    is_lacking,
    is_not_there,
    refuses,
    runs,
    succeeds,
)

ID = OperationId(
    "me",
    "00112233-4455-6677-8899-aabbccddeeff",
    "ffeeddcc-bbaa-9988-7766-554433221100",
    "01234567-89ab-cdef-0123-456789abcdef",
)
PROCESS = ServerProcess(1)  # its address is not known
JOB = Job("INSERT INTO r SELECT :day", parameters={"day": date(2026, 1, 31)})
DONE = Outcome(Status.DONE, "done")
SUCCEEDED, ENDED, LATE, LOST = ({"how": how} for how in ("succeeded", "ended", "late", "lost"))
GONE = refuses("[INVALID_HANDLE.SESSION_NOT_FOUND] The handle is invalid. SQLSTATE: HY000")
ABANDONED = refuses("[INVALID_HANDLE.OPERATION_ABANDONED] The handle is invalid. SQLSTATE: HY000")
NEVER_THERE = refuses("[INVALID_HANDLE.OPERATION_NOT_FOUND] The handle is invalid.")
CANCELED = refuses("[OPERATION_CANCELED] Operation has been canceled. SQLSTATE: HY008")
FAILED = refuses("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012")


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "store"
    found.mkdir()
    return found


def of_try(folder, url, number, defers=False, conf=None, **fields):
    found = context(folder, number, **fields)
    return ConnectOperations(found, folder / f"{number}.json", url, conf or {}, defers)


def left_by_first(folder, url, job=JOB, process=PROCESS):
    """The first attempt begins the statement, and its worker dies."""
    first = of_try(folder, url, 1)
    assert first.outcome_of_earlier(job) is None
    first.begins(process, ID, DONE)
    return first


def recorded(folder):
    return REMOTE_OPERATION.decode(record_of(folder))


def tells(monkeypatch, why, folder=None):
    """The table tells this of its writes, and of a folder with left files, without a server."""
    monkeypatch.setattr(connect, "remote_session", lambda *_: nullcontext())
    monkeypatch.setattr(written_since, "why_it_may_have_written", lambda *_: why)
    monkeypatch.setattr(written_since, "left_files", lambda *_: folder)


@pytest.mark.parametrize("answer", [GONE, ABANDONED], ids=["session", "operation"])
@pytest.mark.parametrize("job", [JOB, replace(JOB, sql="INSERT INTO r SELECT 2")])
def test_nothing_begins_after_a_statement_whose_end_is_unknown(folder, answer, job):
    with answering(answer) as server:
        left_by_first(folder, server.url)
        for number in (2, 3):
            with pytest.raises(AirflowFailException, match="does not know how .* clear the task"):
                of_try(folder, server.url, number).outcome_of_earlier(job)
        assert record_of(folder) is not None


def test_a_cleared_task_runs_after_a_statement_whose_end_is_unknown(folder, monkeypatch, caplog):
    tells(monkeypatch, None)
    with answering(GONE) as server:
        left_by_first(folder, server.url)
        cleared = of_try(folder, server.url, 2, max_tries=2)
        assert cleared.outcome_of_earlier(JOB) is None
        assert "interrupt" in server.calls
    assert record_of(folder) is None
    assert "rows that are there twice" in caplog.text


def test_an_attempt_keeps_the_record_of_its_own_statement_whose_end_is_unknown(folder):
    with answering(GONE) as server:
        first = left_by_first(folder, server.url)
        failed = Outcome(Status.FAILED, "the session is closed")
        assert first.settled(lambda: failed) is failed
        assert record_of(folder) is not None


def test_a_statement_that_never_reached_the_server_runs(folder):
    with answering(NEVER_THERE) as server:
        left_by_first(folder, server.url)
        assert of_try(folder, server.url, 2).outcome_of_earlier(JOB) is None
    assert record_of(folder) is None


@pytest.mark.parametrize(
    "answer", [is_lacking, refuses("the token has expired", domain="proxy.example")]
)
def test_an_error_that_is_not_sparks_is_no_end(folder, answer):
    with answering(answer) as server:
        left_by_first(folder, server.url)
        with pytest.raises(AirflowException, match="nothing shows that it has ended"):
            of_try(folder, server.url, 2).outcome_of_earlier(JOB)
        assert record_of(folder) is not None


@pytest.mark.parametrize("kind", ["POSITION_NOT_AVAILABLE", "NOT_REATTACHABLE"])
def test_an_operation_whose_responses_cannot_be_read_may_still_run(kind):
    with (
        answering(refuses(f"[INVALID_CURSOR.{kind}] The cursor is invalid.")) as server,
        left_operation(server.url, ID, 5) as left,
        pytest.raises(NotEnded, match=kind),
    ):
        left.ending()


@pytest.mark.skipif(Version("4.2") > SPARK, reason="the protocol has no status before Spark 4.2")
def test_a_statement_that_has_only_just_reached_the_server_is_followed():
    def arrives(context):
        server.reattach = succeeds
        NEVER_THERE(context)

    with answering(arrives, runs) as server, left_operation(server.url, ID, 5) as left:
        assert left.ending() is Ending.SUCCEEDED
        assert server.calls == ["reattach", "status", "reattach"]


def test_clearing_another_task_of_the_run_repeats_nothing(folder):
    with answering(succeeds) as server:
        left_by_first(folder, server.url)
        retry = of_try(folder, server.url, 2, clear_number=1)
        assert retry.outcome_of_earlier(JOB) == DONE


@pytest.mark.parametrize(
    ("job", "conf"),
    [
        (JOB, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}),
        (replace(JOB, parameters={"day": date(2026, 2, 1)}), {}),
        (replace(JOB, sql="/* try 2 */ INSERT INTO r SELECT :day"), {}),
    ],
    ids=["settings", "parameters", "statement"],
)
def test_other_work_runs_and_the_log_says_that_the_old_has_succeeded(folder, caplog, job, conf):
    with answering(succeeds) as server:
        left_by_first(folder, server.url)
        assert of_try(folder, server.url, 2, conf=conf).outcome_of_earlier(job) is None
    assert "has succeeded, but this try has another statement" in caplog.text


def test_an_attempt_that_is_stopped_while_it_waits_begins_nothing(folder):
    with answering(hangs) as server:
        left_by_first(folder, server.url)
        second = of_try(folder, server.url, 2)

        def interrupted(_):
            second.mark_stopped()  # as in the handler of SIGTERM, after which the task goes on
            second.stop()
            FAILED(_)

        server.reattach = interrupted
        with pytest.raises(AirflowException, match="was stopped"):
            second.outcome_of_earlier(JOB)
        assert server.calls == ["reattach", "interrupt"]
        with pytest.raises(AirflowException, match="was stopped"):
            second.begins(PROCESS, ID, DONE)
    assert record_of(folder) is None


@pytest.mark.parametrize("answer", [NEVER_THERE, GONE], ids=["operation", "session"])
def test_a_stop_between_record_and_statement_begins_nothing(folder, answer):
    """The stop has ended the session too, and a server would not know how its statement ended."""
    with answering(answer) as server:
        stopped = of_try(folder, server.url, 1)
        store = stopped._record._store
        write = store.set
        store.set = lambda *given: (write(*given), stopped.mark_stopped())
        with pytest.raises(AirflowException, match="was stopped"):
            stopped.settled(lambda: stopped.begins(PROCESS, ID, DONE))
        assert not stopped.may_run()
        assert of_try(folder, server.url, 2).outcome_of_earlier(JOB) is None
        assert server.calls == []
    assert record_of(folder) is None


class TimedOut(BaseException):
    """As Airflow's own, which is no ``Exception``."""


def test_a_timeout_while_an_attempt_waits_interrupts_the_statement(folder, monkeypatch):
    def times_out(_):
        raise TimedOut

    with answering(succeeds) as server:
        left_by_first(folder, server.url)
        module = "airflow_hive_opt.spark.session.connect_operation.LeftOperation.ending"
        monkeypatch.setattr(module, times_out)
        with pytest.raises(TimedOut):
            of_try(folder, server.url, 2).outcome_of_earlier(JOB)
        assert server.calls == ["interrupt"]
    assert record_of(folder) is not None


def test_a_stop_has_one_deadline_for_all_its_calls(folder, caplog, monkeypatch):
    monkeypatch.setattr("airflow_hive_opt.provider.connect_operations._PATIENCE", 0.5)
    caplog.set_level(logging.INFO)
    with answering(hangs) as server:
        server.interrupt = hangs
        first = left_by_first(folder, server.url)
        assert first.stop_own() is None
        assert server.calls == ["interrupt"]
    assert first.may_run()
    assert record_of(folder) is not None
    assert "an earlier attempt" not in caplog.text


def test_responses_that_the_server_has_are_the_end():
    for answer, ending in ((succeeds, Ending.SUCCEEDED), (FAILED, Ending.FAILED)):
        with answering(answer) as server, left_operation(server.url, ID, 5) as left:
            assert left.ending() is ending


def test_the_cause_is_that_of_the_task_alone(folder):
    """A context without a DAG run is enough."""
    found = {"ti": SimpleNamespace(try_number=1, max_tries=3)}
    assert ConnectOperations(found, folder / "1.json", "sc://here", {}, False)._cause == "3"


def test_a_statement_that_the_triggerer_saw_succeed_is_not_asked_about(folder):
    with answering(GONE) as server:
        left_by_first(folder, server.url)
        for number in (1, 2):  # also the next attempt, if this one dies
            assert of_try(folder, server.url, number).outcome_after_wait(ID, SUCCEEDED) == DONE
        assert server.calls == []


def test_a_statement_that_failed_while_its_task_was_deferred_fails_the_task(folder):
    with answering(FAILED) as server:
        left_by_first(folder, server.url)
        found = of_try(folder, server.url, 1).outcome_after_wait(ID, ENDED)
    assert found.status is Status.FAILED
    assert "[DIVIDE_BY_ZERO] Division by zero." in found.message
    assert record_of(folder) is None


@pytest.mark.parametrize(("number", "answer"), [(1, NEVER_THERE), (2, NEVER_THERE), (2, FAILED)])
def test_a_deferred_attempt_has_its_work_still_to_do(folder, number, answer):
    with answering(answer) as server:
        left_by_first(folder, server.url)
        assert of_try(folder, server.url, number).outcome_after_wait(ID, ENDED) is None
    assert record_of(folder) is None


@pytest.mark.parametrize("answer", [GONE, CANCELED], ids=["unknown", "unclear"])
@pytest.mark.parametrize("number", [1, 2], ids=["deferred", "retry"])
def test_a_statement_whose_files_are_there_has_succeeded(folder, monkeypatch, answer, number):
    """Although the server does not know, or tell, how it has ended."""
    asked = []

    def is_there(found, **_):
        asked.append(found.id)
        return True

    monkeypatch.setattr(connect_operations, "has_overwritten", is_there)
    with answering(answer) as server:
        left_by_first(folder, server.url)
        attempt = of_try(folder, server.url, number)
        if number == 1:
            assert attempt.outcome_after_wait(ID, ENDED) == DONE
        else:
            assert attempt.outcome_of_earlier(JOB) == DONE
    assert set(asked) == {ID}
    assert recorded(folder).has_succeeded


@pytest.mark.parametrize("answer", [GONE, CANCELED], ids=["unknown", "unclear"])
def test_a_task_that_was_stopped_or_cleared_is_not_done_by_its_files(folder, monkeypatch, answer):
    monkeypatch.setattr(connect_operations, "has_overwritten", lambda *_, **__: True)
    tells(monkeypatch, None)
    with answering(answer) as server:
        left_by_first(folder, server.url)
        late = of_try(folder, server.url, 1).outcome_after_wait(ID, LATE)
        assert late.status is Status.FAILED
        left_by_first(folder, server.url)
        cleared = of_try(folder, server.url, 2, max_tries=2)
        assert cleared.outcome_of_earlier(JOB) is None


def test_a_deferred_attempt_without_a_record_begins_nothing(folder):
    with answering(succeeds) as server:
        with pytest.raises(AirflowFailException, match="no record any more"):
            of_try(folder, server.url, 1).outcome_after_wait(ID, SUCCEEDED)
        left_by_first(folder, server.url)
        other = replace(ID, operation="1")
        with pytest.raises(AirflowFailException, match="no record any more"):
            of_try(folder, server.url, 1).outcome_after_wait(other, SUCCEEDED)
    assert record_of(folder) is not None


def test_the_end_of_a_deferred_statement_may_be_unknown(folder):
    with answering(GONE) as server:
        left_by_first(folder, server.url)
        with pytest.raises(AirflowFailException, match="does not know how .* clear the task"):
            of_try(folder, server.url, 1).outcome_after_wait(ID, ENDED)
    assert record_of(folder) is not None


def test_a_deferrable_retry_leaves_an_earlier_statement_to_the_triggerer(folder, monkeypatch):
    monkeypatch.setattr("airflow_hive_opt.provider.connect_operations.SECONDS_IN_WORKER", 0.5)
    with answering(hangs) as server:
        left_by_first(folder, server.url)
        retry = of_try(folder, server.url, 2, defers=True)
        with pytest.raises(LeftRunning) as left:
            retry.outcome_of_earlier(JOB)
        assert left.value.id == ID
        assert server.calls == ["reattach"]
        retry.stop()  # the user's, before the task is deferred
        assert server.calls == ["reattach", "interrupt"]
        server.reattach = succeeds
        assert of_try(folder, server.url, 2, defers=True).outcome_of_earlier(JOB) == DONE


def test_a_merge_that_may_run_again_waits_in_its_worker(folder, caplog):
    caplog.set_level(logging.INFO)
    with answering(succeeds) as server:
        first = of_try(folder, server.url, 1, defers=True)
        assert first.begins(PROCESS, ID, DONE) == SECONDS_IN_WORKER
        checked = replace(DONE, statement=f"MERGE INTO t ... raise_error('{SOURCE_CHANGED}')")
        assert first.begins(PROCESS, ID, checked) is None
        assert of_try(folder, server.url, 1).begins(PROCESS, ID, DONE) is None
    assert "may have to run again without its keys" in caplog.text


def test_a_deferrable_retry_says_why_it_leaves_an_earlier_statement_to_the_triggerer(
    folder, caplog
):
    caplog.set_level(logging.INFO)
    with answering(refuses("the token has expired", domain="proxy.example")) as server:
        left_by_first(folder, server.url)
        with pytest.raises(LeftRunning):
            of_try(folder, server.url, 2, defers=True).outcome_of_earlier(JOB)
    assert "the triggerer waits for it: the server does not say: the token" in caplog.text


@pytest.mark.parametrize("is_refused", [False, True])
@pytest.mark.parametrize("condition", ["DIVIDE_BY_ZERO", ""])
def test_what_the_triggerer_knows_of_a_failure_counts_if_the_server_forgets_it(
    folder, is_refused, condition
):
    event = {"how": "failed", "condition": condition, "is_refused": is_refused}
    with answering(GONE) as server:
        left_by_first(folder, server.url)
        found = of_try(folder, server.url, 1).outcome_after_wait(ID, event)
    assert found.status is (Status.REFUSED if is_refused else Status.FAILED)
    assert (f"[{condition}]" in found.message) is bool(condition)
    assert record_of(folder) is None


def test_a_statement_that_the_triggerer_saw_stopped_may_have_written(folder):
    event = {**LATE, "condition": "OPERATION_CANCELED", "is_refused": False}
    with answering(GONE) as server:
        left_by_first(folder, server.url)
        with pytest.raises(AirflowFailException, match="does not know how"):
            of_try(folder, server.url, 1).outcome_after_wait(ID, LATE)
        assert of_try(folder, server.url, 1).outcome_after_wait(ID, event).status is Status.FAILED
    assert recorded(folder).may_have_written


def test_the_record_of_an_interrupted_statement_stays_for_the_retry(folder, monkeypatch, caplog):
    tells(monkeypatch, None)
    with answering(CANCELED) as server:
        first = left_by_first(folder, server.url)
        failed = Outcome(Status.FAILED, "stopped")
        assert first.settled(lambda: failed) is failed
        assert recorded(folder).may_have_written
        other = of_try(folder, server.url, 2)
        assert other.outcome_of_earlier(replace(JOB, sql="INSERT INTO r SELECT 2")) is None
    assert record_of(folder) is None
    assert "try 1 may have written, but this try has another" in caplog.text


def test_an_interrupted_attempt_leaves_the_record_of_the_next_one(folder):
    with answering(CANCELED) as server:
        first = left_by_first(folder, server.url)
        OperationRecord(context(folder, 2), folder / "2.json").write(
            replace(recorded(folder), id=replace(ID, operation=ID.session), attempt=2)
        )
        first.stop_own()
    assert (recorded(folder).attempt, recorded(folder).may_have_written) == (2, False)


def test_a_server_that_fails_does_not_say_whether_a_statement_has_written(folder, monkeypatch):
    def fails(*_):
        raise PySparkException("the metastore is away")

    tells(monkeypatch, None)
    monkeypatch.setattr(written_since, "why_it_may_have_written", fails)
    with answering(CANCELED) as server:
        left_by_first(folder, server.url).stop_own()
        with pytest.raises(AirflowException, match="the metastore is away") as raised:
            of_try(folder, server.url, 2).outcome_of_earlier(JOB)
    assert not isinstance(raised.value, AirflowFailException)
    assert recorded(folder).may_have_written


def test_an_interrupted_statement_that_may_have_written_is_not_repeated(folder, monkeypatch):
    """On another server too: the table says what the statement has written."""
    tells(monkeypatch, "r is newer")
    with answering(CANCELED) as server, answering(CANCELED) as other:
        left_by_first(folder, server.url).stop_own()
        for number in (2, 3):
            with pytest.raises(AirflowFailException, match=r"r is newer.* clear the task"):
                of_try(folder, other.url, number).outcome_of_earlier(JOB)
            assert recorded(folder).may_have_written
        cleared = of_try(folder, other.url, 4, max_tries=4)
        assert cleared.outcome_of_earlier(JOB) is None
    assert record_of(folder) is None


def test_an_interrupted_statement_that_has_not_written_runs_again(folder, monkeypatch):
    tells(monkeypatch, None)
    with answering(CANCELED) as server:
        left_by_first(folder, server.url)  # its worker is killed, and the server interrupts it
        assert of_try(folder, server.url, 2).outcome_of_earlier(JOB) is None
    assert record_of(folder) is None


DROPPED = {
    "4.0": "Operation was orphaned because of an internal error.",
    "4.2": "[SPARK_CONNECT_ILLEGAL_STATE.EXECUTION_STATE_OPERATION_ORPHANED] It has been orphaned.",
}
"""What Spark says of an operation that it drops. It says so once, and then knows nothing of it."""


@pytest.mark.parametrize("message", DROPPED.values(), ids=DROPPED)
def test_a_statement_that_the_server_has_dropped_may_have_written(folder, monkeypatch, message):
    tells(monkeypatch, "r is newer")
    with answering(in_turn(refuses(message), NEVER_THERE)) as server:
        left_by_first(folder, server.url)
        for number in (2, 3):
            with pytest.raises(AirflowFailException, match=r"r is newer.* clear the task"):
                of_try(folder, server.url, number).outcome_of_earlier(JOB)
            assert recorded(folder).may_have_written


def test_a_statement_that_the_triggerer_saw_dropped_may_have_written(folder):
    event = {"how": "failed", "condition": "OPERATION_ORPHANED", "is_refused": False}
    with answering(NEVER_THERE) as server:
        left_by_first(folder, server.url)
        assert of_try(folder, server.url, 1).outcome_after_wait(ID, event).status is Status.FAILED
    assert recorded(folder).may_have_written


@pytest.mark.parametrize("message", DROPPED.values(), ids=DROPPED)
def test_a_statement_that_its_own_client_saw_dropped_may_have_written(folder, message):
    failed = Outcome(Status.FAILED, f"the statement has failed: {message}")
    with answering(NEVER_THERE) as server:
        first = left_by_first(folder, server.url)
        assert first.settled(lambda: failed) is failed
    assert recorded(folder).may_have_written


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Cannot call methods on a stopped SparkContext.", "java.lang.IllegalStateException"),
        (
            "[_LEGACY_ERROR_TEMP_3065] org.apache.hadoop.hive.ql.metadata.HiveException: timed out",
            "org.apache.spark.sql.AnalysisException",
        ),
        (
            "[_LEGACY_ERROR_TEMP_3065] org.apache.thrift.transport.TTransportException",
            "org.apache.spark.sql.AnalysisException",
        ),
        ("commit state", "org.apache.iceberg.exceptions.CommitStateUnknownException"),
        ("connection reset", "org.apache.iceberg.exceptions.RESTException"),
        ("[DELTA_POST_COMMIT_HOOK_FAILED] no", "org.apache.spark.sql.delta.DeltaRuntimeException"),
        ("Failed to rename s3a://b/day=[A]/x", "java.io.IOException"),
    ],
)
def test_an_error_that_is_not_sparks_may_come_after_the_commit(folder, monkeypatch, message, kind):
    tells(monkeypatch, "r is newer")
    failed = Outcome(Status.FAILED, message)
    with answering(refuses(message, kind=kind)) as server:
        first = left_by_first(folder, server.url)
        assert first.settled(lambda: failed) is failed
        assert recorded(folder).may_have_written
        with pytest.raises(AirflowFailException, match=r"not succeeded.* r is newer.* clear"):
            of_try(folder, server.url, 2).outcome_of_earlier(JOB)
        tells(monkeypatch, None)
        assert of_try(folder, server.url, 3).outcome_of_earlier(JOB) is None
    assert record_of(folder) is None


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (
            "Job aborted due to stage failure: java.io.IOException",
            "org.apache.spark.SparkException",
        ),
        ("[DIVIDE_BY_ZERO] no", "org.apache.spark.SparkArithmeticException"),
        ("branch main has changed", "org.apache.iceberg.exceptions.CommitFailedException"),
    ],
)
def test_an_error_before_the_commit_is_repeated_at_once(folder, message, kind):
    with answering(refuses(message, kind=kind)) as server:
        left_by_first(folder, server.url).settled(lambda: Outcome(Status.FAILED, message))
    assert record_of(folder) is None


@pytest.mark.skipif(Version("4.2") > SPARK, reason="the protocol has no status before Spark 4.2")
def test_a_failure_that_the_server_does_not_tell_may_come_after_the_commit(folder, monkeypatch):
    tells(monkeypatch, "r is newer")
    with answering(ABANDONED, lambda context: runs(context, "FAILED")) as server:
        left_by_first(folder, server.url)
        with pytest.raises(AirflowFailException, match=r"not succeeded.* r is newer"):
            of_try(folder, server.url, 2).outcome_of_earlier(JOB)
    assert recorded(folder).may_have_written


@pytest.mark.parametrize("answer", [GONE, NEVER_THERE, FAILED], ids=["gone", "never", "failed"])
def test_an_unclear_failure_that_the_triggerer_saw_may_come_after_the_commit(folder, answer):
    event = {"how": "failed", "condition": "UNCLEAR_ERROR", "is_refused": False}
    with answering(answer) as server:
        left_by_first(folder, server.url)
        found = of_try(folder, server.url, 1).outcome_after_wait(ID, event)
    assert found.status is Status.FAILED
    assert "UNCLEAR" not in found.message
    assert recorded(folder).may_have_written


def test_a_stop_while_the_retry_opens_its_channel_interrupts_the_statement(folder, monkeypatch):
    """The retry may import gRPC then, so a handler would wait for it in vain."""
    with answering(hangs) as server:
        left_by_first(folder, server.url)
        retry = of_try(folder, server.url, 2)

        def stopped(*given):
            monkeypatch.setattr(connect_operation, "left_operation", left_operation)
            retry.mark_stopped()
            retry.stop()
            assert server.calls == []
            server.reattach = CANCELED
            return left_operation(*given)

        monkeypatch.setattr(connect_operation, "left_operation", stopped)
        tells(monkeypatch, None)
        with pytest.raises(AirflowException, match="was stopped, so no statement begins"):
            retry.outcome_of_earlier(JOB)
        assert server.calls[:2] == ["interrupt", "reattach"]


def test_a_task_waits_for_its_stop_if_its_handler_could_not(folder, monkeypatch):
    """The handler's thread needs a lock that the interrupted thread holds."""
    lock, ended = Lock(), []

    def end():
        with lock:
            time.sleep(0.5)
            ended.append(True)

    path = folder / "1.json"
    operator = SimpleNamespace(attempt_path=lambda _: path, conn_id="server", conf=None)
    place = SimpleNamespace(address="sc://127.0.0.1:1")
    with connected(operator, context(folder, 1), place) as run:
        monkeypatch.setattr(run, "_end", end)
        with lock:
            operator._interrupt()
            assert ended == []
    assert ended == [True]
    with lock:
        Timer(3, lock.release).start()
        run.stop()
        assert ended == [True, True]
        lock.acquire()


def test_the_words_of_a_failure_are_the_servers(folder):
    event = {"how": "failed", "condition": "OTHER", "is_refused": True}
    with answering(FAILED) as server:
        left_by_first(folder, server.url)
        found = of_try(folder, server.url, 1).outcome_after_wait(ID, event)
    assert (found.status, "Division by zero" in found.message) == (Status.FAILED, True)


def test_an_attempt_waits_for_a_minute_only_for_what_it_has_interrupted(folder, monkeypatch):
    monkeypatch.setattr("airflow_hive_opt.provider.connect_operations._SECONDS_TO_END", 0.5)
    with answering(hangs) as server:
        left_by_first(folder, server.url)
        cleared = of_try(folder, server.url, 2, max_tries=2)
        with pytest.raises(AirflowException, match="nothing shows that it has ended"):
            cleared.outcome_of_earlier(JOB)
        with pytest.raises(AirflowException, match="nothing shows that it has ended"):
            of_try(folder, server.url, 1).outcome_after_wait(ID, LATE)
        assert server.calls == ["interrupt", "reattach"] * 2
    assert record_of(folder) is not None


def test_a_retry_whose_time_is_over_begins_nothing(folder):
    with answering(FAILED) as server:
        left_by_first(folder, server.url)
        found = of_try(folder, server.url, 2).outcome_after_wait(ID, LATE)
    assert found.status is Status.FAILED


def test_a_worker_waits_for_what_the_triggerer_could_not_follow(folder):
    with answering(in_turn(is_cut, succeeds)) as server:
        left_by_first(folder, server.url)
        assert of_try(folder, server.url, 1).outcome_after_wait(ID, LOST) == DONE
        assert server.calls == ["reattach", "reattach"]


def test_a_worker_does_not_wait_for_a_server_that_hangs(monkeypatch):
    for name, value in (("_ONE_CALL", 0.1), ("_AT_ONCE", 0.1), ("_PAUSE", 0.01)):
        monkeypatch.setattr(connect_operation, name, value)
    with answering(hangs, most=64) as server, left_operation(server.url, ID) as left:
        server.version = hangs
        with pytest.raises(NotEnded, match="does not say"):
            left.ending()
        assert server.calls == ["reattach", "version"] * 6


@pytest.mark.parametrize("cut", [is_cut, is_not_there], ids=["with a response", "without one"])
def test_a_worker_follows_behind_a_proxy_that_cuts_each_stream(monkeypatch, cut):
    monkeypatch.setattr(connect_operation, "_PAUSE", 0.01)
    with (
        answering(in_turn(*[cut] * 20, succeeds)) as server,
        left_operation(server.url, ID) as left,
    ):
        assert left.ending() is Ending.SUCCEEDED


AT_AN_ADDRESS = ServerProcess(1, "10.0.0.5:15002")


def is_started_again(monkeypatch, answer, why=None):
    """``answer`` says whether the server was, and the table tells ``why``."""
    tells(monkeypatch, why)
    monkeypatch.setattr(server_process, "has_ended", answer)


def test_a_statement_of_a_server_that_was_started_again_runs_again(folder, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    is_started_again(monkeypatch, lambda before, *_: before == AT_AN_ADDRESS)
    with answering(GONE) as server:
        left_by_first(folder, server.url, process=AT_AN_ADDRESS)
        assert of_try(folder, server.url, 2).outcome_of_earlier(JOB) is None
    assert record_of(folder) is None
    assert "the server was started again since" in caplog.text


def test_a_statement_that_wrote_before_its_server_ended_is_not_repeated(folder, monkeypatch):
    is_started_again(monkeypatch, lambda *_: True, "r has been written to")
    with answering(GONE) as server:
        left_by_first(folder, server.url, process=AT_AN_ADDRESS)
        for number in (2, 3):
            with pytest.raises(AirflowFailException, match="r has been written to"):
                of_try(folder, server.url, number).outcome_of_earlier(JOB)
    assert recorded(folder).may_have_written


def test_another_server_does_not_know_whether_a_statement_has_ended(folder, monkeypatch):
    is_started_again(monkeypatch, lambda *_: False)
    with answering(GONE) as server:
        left_by_first(folder, server.url, process=AT_AN_ADDRESS)
        with pytest.raises(AirflowFailException, match="may even still run"):
            of_try(folder, server.url, 2).outcome_of_earlier(JOB)
    assert not recorded(folder).has_ended


def test_a_server_that_fails_does_not_say_whether_it_was_started_again(folder, monkeypatch):
    def fails(*_):
        raise PySparkException("[NO_ANSWER] gone")

    is_started_again(monkeypatch, fails)
    with answering(GONE) as server:
        left_by_first(folder, server.url, process=AT_AN_ADDRESS)
        with pytest.raises(AirflowException, match="NO_ANSWER.* The next try asks again") as raised:
            of_try(folder, server.url, 2).outcome_of_earlier(JOB)
    assert not isinstance(raised.value, AirflowFailException)
    assert not recorded(folder).has_ended


def test_an_attempt_that_is_stopped_while_an_old_server_ends_begins_nothing(folder, monkeypatch):
    with answering(GONE) as server:
        left_by_first(folder, server.url, process=AT_AN_ADDRESS)
        second = of_try(folder, server.url, 2)

        def stopped(*given):
            second.mark_stopped()
            given[-1]()

        is_started_again(monkeypatch, stopped)
        with pytest.raises(AirflowException, match="was stopped, so no statement begins"):
            second.outcome_of_earlier(JOB)
    assert not recorded(folder).has_ended


def test_a_deferred_statement_whose_server_was_started_again_is_left_to_the_retry(
    folder, monkeypatch
):
    is_started_again(monkeypatch, lambda *_: True)
    with answering(GONE) as server:
        left_by_first(folder, server.url, process=AT_AN_ADDRESS)
        found = of_try(folder, server.url, 1).outcome_after_wait(ID, ENDED)
        assert (found.status, "The next try looks" in found.message) == (Status.FAILED, True)
        assert recorded(folder).may_have_written
        assert of_try(folder, server.url, 2).outcome_of_earlier(JOB) is None
    assert record_of(folder) is None


def test_a_failure_that_the_triggerer_knows_is_none_of_a_server_that_was_started_again(
    folder, monkeypatch
):
    is_started_again(monkeypatch, lambda *_: pytest.fail("nobody has to know"))
    with answering(GONE) as server:
        left_by_first(folder, server.url, process=AT_AN_ADDRESS)
        event = {"how": "failed", "condition": "DIVIDE_BY_ZERO"}
        assert of_try(folder, server.url, 1).outcome_after_wait(ID, event).status is Status.FAILED
    assert record_of(folder) is None


@pytest.mark.parametrize("max_tries", [1, 2], ids=["retry", "cleared"])
def test_files_that_the_next_statement_would_add_stop_each_attempt(folder, monkeypatch, max_tries):
    tells(monkeypatch, None, "s3a://b/r/_temporary/0")
    with answering(CANCELED) as server:
        left_by_first(folder, server.url)
        for _ in range(2):
            with pytest.raises(AirflowException, match="/_temporary/0 has files .*delete") as no:
                of_try(folder, server.url, 2, max_tries=max_tries).outcome_of_earlier(JOB)
            assert not isinstance(no.value, AirflowFailException)
        tells(monkeypatch, None)
        last = of_try(folder, server.url, 3, max_tries=max_tries)
        assert last.outcome_of_earlier(JOB) is None
    assert record_of(folder) is None


@pytest.mark.parametrize("how", ["other work", "unknown", "another server"])
def test_a_cleared_task_adds_no_left_files_whatever_it_runs(folder, monkeypatch, how):
    tells(monkeypatch, "nobody asks", "s3a://b/r/_temporary/0")
    job = replace(JOB, sql="INSERT INTO r SELECT 2") if how == "other work" else JOB
    with answering(GONE if how == "unknown" else CANCELED) as server, answering(GONE) as other:
        left_by_first(folder, other.url if how == "another server" else server.url)
        for number in (2, 3):
            cleared = of_try(folder, server.url, number, max_tries=3)
            with pytest.raises(AirflowException, match="/_temporary/0 has files"):
                cleared.outcome_of_earlier(job)
        assert recorded(folder).may_have_written is (how == "other work")
        tells(monkeypatch, None)
        last = of_try(folder, server.url, 4, max_tries=3)
        assert last.outcome_of_earlier(job) is None
    assert record_of(folder) is None


def test_a_cleared_task_whose_table_can_not_be_read_runs(folder, monkeypatch, caplog):
    def fails(*_):
        raise PySparkException("[NO_FILE_SYSTEM] s3")

    tells(monkeypatch, None)
    monkeypatch.setattr(written_since, "left_files", fails)
    with answering(CANCELED) as server:
        left_by_first(folder, server.url)
        with pytest.raises(AirflowException, match="nothing shows whether it has written: .*s3"):
            of_try(folder, server.url, 2).outcome_of_earlier(JOB)
        cleared = of_try(folder, server.url, 3, max_tries=3)
        assert cleared.outcome_of_earlier(JOB) is None
    assert "rows that are there twice" in caplog.text


def test_a_cleared_task_warns_if_its_table_has_been_written_to(folder, monkeypatch, caplog):
    tells(monkeypatch, "r has been written to")
    with answering(CANCELED) as server:
        left_by_first(folder, server.url)
        cleared = of_try(folder, server.url, 2, max_tries=2)
        assert cleared.outcome_of_earlier(JOB) is None
    assert "r has been written to. Look for rows that are there twice" in caplog.text


def test_secrets_are_masked_in_the_record(folder):
    mask_secret("hunter22-secret")
    with answering(succeeds) as server:
        first = of_try(folder, server.url, 1)
        first.begins(PROCESS, ID, replace(DONE, statement="INSERT INTO r SELECT 'hunter22-secret'"))
    assert "hunter22-secret" not in record_of(folder).decode()
    assert "INSERT INTO r SELECT '***'" in record_of(folder).decode()


def with_version(folder, number):
    """Makes the record one of another version of the format, which has no ``id``."""
    document = json.loads(record_of(folder))
    del document["sha256"], document["id"]
    document["version"] = number
    Store(folder).set("spark_connect_operation", json.dumps(document))


@pytest.mark.parametrize("version", [REMOTE_OPERATION.version - 1, REMOTE_OPERATION.version + 1])
def test_a_clear_gets_past_a_record_of_another_version(folder, caplog, version):
    with answering(succeeds) as server:
        left_by_first(folder, server.url)
        with_version(folder, version)
        for number in (2, 3):
            with pytest.raises(AirflowException, match="version .* has ended, clear the task"):
                of_try(folder, server.url, number).outcome_of_earlier(JOB)
        with pytest.raises(AirflowException, match="clear the task"):
            of_try(folder, server.url, 1).outcome_after_wait(ID, SUCCEEDED)
        cleared = of_try(folder, server.url, 4, max_tries=5)
        assert cleared.outcome_of_earlier(JOB) is None
        assert "look for rows that are there twice" in caplog.text
        cleared.begins(PROCESS, ID, DONE)
        assert server.calls == []


def test_a_damaged_record_says_how_to_get_past_it(folder):
    with answering(succeeds) as server:
        left_by_first(folder, server.url)
        Store(folder).set("spark_connect_operation", record_of(folder).decode()[:-50])
        with pytest.raises(AirflowException, match="delete 'spark_connect_operation' from its"):
            of_try(folder, server.url, 2, max_tries=5).outcome_of_earlier(JOB)
        assert server.calls == []
