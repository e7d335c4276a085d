"""A retry on the embedded Spark does not add the rows of an attempt before it again."""

from __future__ import annotations

import logging
from contextlib import contextmanager, nullcontext
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest
from upath import UPath

from airflow_hive_opt.documents import claims
from airflow_hive_opt.documents.job import Job, Outcome, Status
from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.operators.local_task import LocalTaskOperator
from airflow_hive_opt.operators.map_join import MapJoinOperator
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.provider import embedded, embedded_attempt
from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
)
from airflow_hive_opt.spark.application import run as runs
from tests.operators.star_tables import make_star
from tests.operators.test_submission import context

SELECT = "SELECT f.id, f.p FROM again.fact f JOIN again.keys k ON f.p = k.p AND k.id < 2"
INTO = f"INSERT INTO again.result {SELECT}"
WROTE = [(0, 0), (1, 1)]


class Killed(BaseException):
    """The worker is killed: nothing of the package runs after it."""


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    make_star(spark, "again", rows=6)
    yield
    spark.sql("DROP DATABASE again CASCADE")


@pytest.fixture(autouse=True)
def result(spark):
    spark.sql("CREATE TABLE again.result (id INT, p INT) STORED AS PARQUET")
    yield
    spark.sql("DROP TABLE again.result")


def rows(spark):
    spark.sql("REFRESH TABLE again.result")  # another session wrote it
    return sorted(map(tuple, spark.table("again.result").collect()))


def of_try(number, max_tries=2, retries=2, started=None):
    found = context(number, max_tries=max_tries)
    found["ti"].task = SimpleNamespace(retries=retries)
    found["dag_run"].start_date = started
    return found


def attempt(folder, number, sql=INTO, found=None, cls=MapJoinPruneOperator, **options):
    made = cls(task_id="t", sql=sql, descriptor_path=str(folder), **options)
    return made.execute(found or of_try(number))


@pytest.fixture
def dies(monkeypatch, tmp_path):
    """Runs the first attempt, which ends before or after its statement."""

    def first(after_commit, **options):
        with monkeypatch.context() as patch:
            if after_commit:
                ran = runs.run_restricted

                def and_die(*given):
                    ran(*given)
                    raise Killed

                patch.setattr(runs, "run_restricted", and_die)
            else:
                patch.setattr(runs, "run_restricted", kill)
            with pytest.raises(Killed):
                attempt(tmp_path, 1, **options)

    return first


def kill(*_):
    raise Killed


def full(*_):
    raise DescriptorError("no space is left")


@pytest.fixture
def upath(tmp_path):
    return UPath(tmp_path)


def test_rows_that_were_committed_before_the_kill_are_not_added_again(spark, tmp_path, dies):
    dies(after_commit=True)
    message = "`result` has been written to since that statement began"
    with pytest.raises(AirflowFailException, match=message):
        attempt(tmp_path, 2)
    assert rows(spark) == WROTE
    attempt(tmp_path, 3, found=of_try(3, max_tries=4))  # a user has looked, and has cleared it
    assert rows(spark) == sorted(WROTE * 2)


def test_an_attempt_that_was_killed_before_it_wrote_is_repeated(spark, tmp_path, dies):
    dies(after_commit=False)
    summary = attempt(tmp_path, 2)
    assert rows(spark) == WROTE
    assert summary["kept"] == 2


def test_the_outcome_of_an_attempt_that_is_done_counts(spark, tmp_path, monkeypatch, caplog):
    """The worker dies between the end of the run and its report to Airflow."""
    with monkeypatch.context() as patch:
        patch.setattr(MapJoinPruneOperator, "finish", kill)
        with pytest.raises(Killed):
            attempt(tmp_path, 1)
    assert rows(spark) == WROTE
    monkeypatch.setattr(embedded, "embedded_session", kill)  # it starts no Spark
    with caplog.at_level(logging.INFO):
        summary = attempt(tmp_path, 2)
    assert "attempt 1 has run the statement, so its outcome counts" in caplog.text
    assert (summary["kept"], summary["total"]) == (2, 6)
    assert rows(spark) == WROTE
    assert summary["uri"] == str(tmp_path / "d/r/t/-1/1.json")  # the pages of the retry show it


def test_a_failure_before_the_commit_is_repeated(spark, tmp_path):
    sql = INTO.replace("f.id, f.p", "if(assert_true(f.id < 0) IS NULL, f.id, 0), f.p")
    with pytest.raises(AirflowException, match="is not true"):
        attempt(tmp_path, 1, sql=sql)
    spark.sql("INSERT INTO again.result VALUES (7, 7)")  # another writer
    with pytest.raises(AirflowException, match="is not true"):  # it has run again
        attempt(tmp_path, 2, sql=sql)
    assert rows(spark) == [(7, 7)]


@pytest.mark.parametrize(
    ("sql", "options"),
    [(INTO, {"prune_only": True}), (INTO.replace("INTO", "OVERWRITE"), {}), (SELECT, {})],
)
def test_others_write_no_claim(tmp_path, sql, options):
    with pytest.raises(AirflowSkipException) if options else nullcontext():
        attempt(tmp_path, 1, sql=sql, **options)
    names = {path.name for path in (tmp_path / "d/r/t/-1").iterdir()}
    assert not names & {"claim.json", "1.begun.json", "1.outcome.json"}


def test_a_run_succeeds_even_if_its_outcome_cannot_be_stored(spark, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(embedded_attempt, "write_outcome", full)
    attempt(tmp_path, 1)
    assert "a retry will not know how this attempt has ended: no space is left" in caplog.text
    monkeypatch.undo()
    with pytest.raises(AirflowFailException, match="has been written to"):
        attempt(tmp_path, 2)
    assert rows(spark) == WROTE


@pytest.mark.parametrize("fails", ["claim.json", "claim"])
def test_nothing_runs_if_the_claim_cannot_be_read_or_stored(spark, tmp_path, monkeypatch, fails):
    if fails == "claim.json":
        (tmp_path / "d/r/t/-1/claim.json").mkdir(parents=True)
    else:
        monkeypatch.setattr(claims._CLAIM.__class__, "write", full)
    monkeypatch.setattr(embedded, "embedded_session", kill)  # it starts no Spark
    with pytest.raises(AirflowException, match=r"claim\.json|no space is left"):
        attempt(tmp_path, 1)
    assert rows(spark) == []


def test_a_map_join_is_not_repeated_either(spark, tmp_path):
    pruned = attempt(tmp_path / "pruned", 1, cls=LocalTaskOperator)
    options = {"cls": MapJoinOperator, "descriptor": pruned}
    first = attempt(tmp_path, 1, **options)
    assert attempt(tmp_path, 2, **options) == first
    assert rows(spark) == WROTE


# What counts as a retry, without Spark.


def done(folder, found, settings=None, sql=INTO, show_rows=5):
    """Whether the attempt has nothing to do; if it has, it does it."""
    path = folder / f"{found['ti'].try_number}.json"
    job = Job(sql, str(path), show_rows=show_rows)
    mine = embedded_attempt.EmbeddedAttempt.claimed(job, found, settings or {})
    if mine.done is None:
        claims.begin(path, mine.job.token, None)
        mine.tell(Outcome(Status.DONE, "done"), was_stopped=False)
    return mine.done is not None


HIVE = {"spark.hadoop.hive.metastore.uris": "thrift://here:9083"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"show_rows": 6}, True),
        ({"settings": {**HIVE, "spark.driver.memory": "2g"}}, True),
        ({"settings": {**HIVE, "spark.hadoop.fs.s3a.session.token": "another"}}, True),
        ({"settings": {"spark.hadoop.hive.metastore.uris": "thrift://there:9083"}}, False),
        ({"settings": {**HIVE, "spark.sql.catalog.lake.uri": "thrift://there:9083"}}, False),
        ({"sql": f"SET a = b;\n{INTO}"}, False),
        ({"sql": INTO + " -- other"}, False),
        ({"found": of_try(2, max_tries=3)}, False),  # cleared
        ({"found": of_try(2, max_tries=2, retries=1)}, False),  # cleared, with one retry less
        ({"found": of_try(2, started=datetime(2026, 2, 1, tzinfo=timezone.utc))}, False),  # again
    ],
)
def test_the_outcome_of_the_same_work_counts(upath, changes, expected):
    assert not done(upath, of_try(1), HIVE)
    given = {"found": of_try(2), "settings": HIVE, **changes}
    assert done(upath, **given) is expected
    if expected:
        assert done(upath, of_try(3), HIVE)  # the second one has died as it took the outcome


def test_an_outcome_that_cannot_be_read_now_is_read_by_the_next_retry(upath, monkeypatch):
    assert not done(upath, of_try(1))
    with monkeypatch.context() as patch:
        patch.setattr(embedded_attempt, "outcome_if_any", full)
        with pytest.raises(AirflowException, match="no space is left"):
            done(upath, of_try(2))
    assert done(upath, of_try(3))


@pytest.mark.parametrize("was_stopped", [True, False])
def test_a_stopped_statement_may_have_written(upath, was_stopped):
    job = Job(INTO, str(upath / "1.json"))
    first = embedded_attempt.EmbeddedAttempt.claimed(job, of_try(1), {})
    claims.begin(upath / "1.json", first.job.token, None)
    first.tell(Outcome(Status.FAILED, "the job was cancelled"), was_stopped)
    job = Job(INTO, str(upath / "2.json"))
    second = embedded_attempt.EmbeddedAttempt.claimed(job, of_try(2), {})
    since = claims.begin(upath / "2.json", second.job.token, None)
    assert (since is not None) is was_stopped


def test_the_outcome_is_there_before_spark_ends(tmp_path, monkeypatch):
    """A worker that is killed while Spark stops has done its work."""
    session = embedded.embedded_session

    @contextmanager
    def and_die(*given):
        with session(*given) as found:
            yield found
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(embedded, "embedded_session", and_die)
        with pytest.raises(Killed):
            attempt(tmp_path, 1)
    monkeypatch.setattr(embedded, "embedded_session", kill)
    assert attempt(tmp_path, 2)["kept"] == 2


def test_no_secret_is_stored_with_an_outcome(upath, monkeypatch):
    monkeypatch.setattr(embedded_attempt, "masked", lambda text: text.replace("pass", "***"))
    job = Job(INTO, str(upath / "1.json"))
    first = embedded_attempt.EmbeddedAttempt.claimed(job, of_try(1), {})
    first.tell(Outcome(Status.FAILED, "the word is pass"), was_stopped=False)
    assert "the word is ***" in (upath / "1.outcome.json").read_text()
