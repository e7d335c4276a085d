"""A retry on the embedded Spark does not add the rows of an attempt before it again."""

from __future__ import annotations

import logging

import pytest

from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.provider import embedded, embedded_attempt
from airflow_hive_opt.provider.airflow_compat import AirflowException, AirflowFailException
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


def attempt(folder, number, sql=INTO, max_tries=2, **options):
    made = MapJoinPruneOperator(
        task_id="t", sql=sql, descriptor_path=str(folder), **{"retries": 2, **options}
    )
    return made.execute(context(number, max_tries=max_tries))


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


def test_rows_that_were_committed_before_the_kill_are_not_added_again(spark, tmp_path, dies):
    dies(after_commit=True)
    message = "`result` has been written to since that statement began"
    with pytest.raises(AirflowFailException, match=message):
        attempt(tmp_path, 2)
    assert rows(spark) == WROTE
    attempt(tmp_path, 3, max_tries=4)  # a user has looked, and has cleared the task
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
    assert "attempt 1 has run the statement: its outcome counts" in caplog.text
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
    [(INTO, {"retries": 0}), (INTO.replace("INTO", "OVERWRITE"), {}), (SELECT, {})],
)
def test_others_write_no_claim(tmp_path, monkeypatch, sql, options):
    attempt(tmp_path, 1, sql=sql, **options)
    names = {path.name for path in (tmp_path / "d/r/t/-1").iterdir()}
    assert not names & {"claim.json", "1.begun.json", "1.outcome.json"}


def test_a_run_succeeds_even_if_its_outcome_cannot_be_stored(spark, tmp_path, monkeypatch, caplog):
    def full(*_):
        raise DescriptorError("no space is left")

    monkeypatch.setattr(embedded_attempt, "write_outcome", full)
    attempt(tmp_path, 1)
    assert "a retry will not know how this attempt has ended: no space is left" in caplog.text
    monkeypatch.undo()
    with pytest.raises(AirflowFailException, match="has been written to"):
        attempt(tmp_path, 2)
    assert rows(spark) == WROTE


def test_nothing_runs_if_the_claim_cannot_be_stored(spark, tmp_path):
    (tmp_path / "d/r/t/-1/claim.json").mkdir(parents=True)
    with pytest.raises(AirflowException, match=r"claim\.json"):
        attempt(tmp_path, 1)
    assert rows(spark) == []
