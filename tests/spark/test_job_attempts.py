"""Inserts take no files of other jobs on the same table, such as those of a run that was killed."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyarrow import array, int32, parquet, table

from airflow_hive_opt.documents.job import Job, Status
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.map_join import execution, job_attempt, nested_folders
from airflow_hive_opt.spark.map_join.command import Command
from airflow_hive_opt.spark.map_join.job_attempt import (
    InsertedTable,
    RowsMayBeMissing,
    _Attempt,
    own_job_attempt,
)

JOIN = "FROM attempts.sales s JOIN attempts.days d ON s.ds = d.ds AND d.week = 1"
OTHERS = -7  # the item of another job


@pytest.fixture(scope="module", autouse=True)
def sources(spark):
    spark.sql("CREATE DATABASE attempts")
    spark.sql("CREATE TABLE attempts.sales (item INT) PARTITIONED BY (ds INT) STORED AS PARQUET")
    spark.sql("INSERT INTO attempts.sales VALUES (1, 1), (2, 2), (3, 3)")
    spark.sql("CREATE TABLE attempts.days STORED AS PARQUET AS SELECT 1 AS week, 2 AS ds")
    yield
    spark.sql("DROP DATABASE attempts CASCADE")


@pytest.fixture(params=["STORED AS PARQUET", "USING parquet"])
def folder(spark, request):
    """The folder of an empty partitioned table."""
    if request.param.startswith("USING"):
        columns = f"(item INT, a STRING, b INT) {request.param} PARTITIONED BY (a, b)"
    else:
        columns = f"(item INT) PARTITIONED BY (a STRING, b INT) {request.param}"
    spark.sql(f"CREATE TABLE attempts.result {columns}")
    described = spark.sql("DESCRIBE FORMATTED attempts.result").where("col_name = 'Location'")
    yield Path(described.collect()[0]["data_type"].removeprefix("file:"))
    spark.sql("DROP TABLE attempts.result")


def leave(folder: Path) -> Path:
    """What the finished task of a job leaves that is killed while other tasks run."""
    left = folder / "_temporary" / "0" / "task_1" / "a=x" / "b=1" / "part-00000-others.parquet"
    left.parent.mkdir(parents=True)
    parquet.write_table(table({"item": array([OTHERS], int32())}), left)
    return left


def run(spark, tmp_path, sql: str, **job):
    return run_job(spark.newSession(), Job(sql, str(tmp_path / "1.json"), **job))


def items(spark) -> list[int]:
    spark.sql("MSCK REPAIR TABLE attempts.result")
    spark.sql("REFRESH TABLE attempts.result")
    return sorted(row.item for row in spark.table("attempts.result").collect())


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (f"INSERT INTO attempts.result PARTITION (a = 'x', b = 1) SELECT s.item {JOIN}", [2]),
        (f"INSERT INTO attempts.result SELECT s.item, 'x', 1 {JOIN}", [2]),
        (f"INSERT OVERWRITE attempts.result PARTITION (a = 'x', b) SELECT s.item, 1 {JOIN}", [2]),
        ("INSERT INTO attempts.result VALUES (5, 'x', 1)", [5]),
        (
            f"FROM (SELECT s.item {JOIN}) INSERT INTO attempts.result PARTITION (a = 'x', b = 1) "
            "SELECT item INSERT INTO attempts.result PARTITION (a = 'y', b = 1) SELECT item",
            [2, 2],
        ),
    ],
    ids=["one partition", "dynamic", "some partitions", "values", "several"],
)
def test_an_insert_does_not_take_the_files_of_a_killed_job(spark, tmp_path, folder, sql, rows):
    left = leave(folder)
    outcome = run(spark, tmp_path, sql)
    assert outcome.status is Status.DONE, outcome.message
    assert items(spark) == rows
    assert left.exists()
    shutil.rmtree(folder / "_temporary")
    outcome = run(spark, tmp_path, sql)
    assert outcome.status is Status.DONE, outcome.message
    assert not (folder / "_temporary").exists()


def test_parameters_and_a_committer_of_the_user(spark, tmp_path, folder):
    left = leave(folder)
    sql = f"INSERT INTO attempts.result SELECT s.item, :a, 1 {JOIN}"
    assert run(spark, tmp_path, sql, parameters={"a": "x"}).status is Status.DONE
    assert items(spark) == [2]
    number = "SET mapreduce.job.application.attempt.id = 0;\n"
    assert run(spark, tmp_path, number + sql, parameters={"a": "x"}).status is Status.DONE
    assert items(spark) == [OTHERS, 2, 2]  # as Spark itself does
    assert not left.exists()


def test_runs_at_the_same_time_add_their_rows_each(spark, tmp_path, folder):
    sql = f"INSERT INTO attempts.result PARTITION (a = 'x', b = 1) SELECT s.item {JOIN}"
    outcomes = []

    def add(number: int) -> None:
        for turn in range(2):
            outcomes.append(run(spark, tmp_path / f"{number}-{turn}", sql))

    threads = [threading.Thread(target=add, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.message for each in outcomes if each.status is not Status.DONE] == []
    assert items(spark) == [2] * 6
    assert not (folder / "_temporary").exists()


def test_a_run_whose_files_another_job_removes_fails_and_is_not_retried(
    spark, tmp_path, folder, monkeypatch
):
    class Disturbed(Command):
        def run_as_planned(self) -> bool:
            done = super().run_as_planned()
            shutil.rmtree(folder / "_temporary")  # as another job does at its end
            return done

    monkeypatch.setattr(execution, "Command", Disturbed)
    sql = f"INSERT INTO attempts.result PARTITION (a = 'x', b = 1) SELECT s.item {JOIN}"
    outcome = run(spark, tmp_path, sql)
    assert outcome.status is Status.REFUSED
    assert "rows may be missing in file:" in outcome.message


@pytest.mark.parametrize("nested", ["a=x", "a=x/b=1"])
def test_files_that_a_commit_has_nested_are_moved_out(spark, tmp_path, folder, monkeypatch, nested):
    """As the committer's rename does when another job makes the folder at the same moment."""
    sql = f"INSERT INTO attempts.result PARTITION (a = 'x', b = 1) SELECT s.item {JOIN}"

    class Disturbed(Command):
        def run_as_planned(self) -> bool:
            (folder / "_temporary" / "0").mkdir()  # another job begins
            done = super().run_as_planned()
            place, aside = folder / nested, folder / "_aside"
            place.rename(aside)
            (place / "b=1" if nested == "a=x" else place).mkdir(parents=True)
            aside.rename(place / place.name)
            os.utime(folder / "a=x", (0, 0))  # as if only the folder below it were new
            return done

    monkeypatch.setattr(execution, "Command", Disturbed)
    assert run(spark, tmp_path, sql).status is Status.DONE
    assert items(spark) == [2]
    assert not (folder / nested / Path(nested).name).exists()


def test_files_that_an_earlier_job_has_lost_stay_where_they_are(
    spark, tmp_path, folder, monkeypatch
):
    """That job may have run again since, so that its rows are in the table."""
    lost = folder / "a=x" / "b=1" / "b=1" / "part-old"

    class Disturbed(Command):
        def run_as_planned(self) -> bool:
            (folder / "_temporary" / "0").mkdir()
            lost.parent.mkdir(parents=True)
            lost.touch()
            os.utime(lost, (0, 0))
            return super().run_as_planned()

    monkeypatch.setattr(execution, "Command", Disturbed)
    sql = f"INSERT INTO attempts.result PARTITION (a = 'x', b = 1) SELECT s.item {JOIN}"
    assert run(spark, tmp_path, sql).status is Status.DONE
    assert lost.exists()
    lost.unlink()
    lost.parent.rmdir()
    assert items(spark) == [2]


def test_files_that_stay_nested_are_named(spark, tmp_path, folder, monkeypatch):
    class Disturbed(Command):
        def run_as_planned(self) -> bool:
            (folder / "_temporary" / "0").mkdir()
            done = super().run_as_planned()
            nested = folder / "a=x" / "a=x" / "b=1"
            nested.mkdir(parents=True)
            (nested / "part-1").touch()
            return done

    monkeypatch.setattr(nested_folders, "_move", lambda *arguments: None)
    monkeypatch.setattr(execution, "Command", Disturbed)
    sql = f"INSERT INTO attempts.result PARTITION (a = 'x', b = 1) SELECT s.item {JOIN}"
    outcome = run(spark, tmp_path, sql)
    assert outcome.status is Status.REFUSED
    assert (
        f"files such as file:{folder}/a=x/a=x/b=1/part-1 are one folder too deep" in outcome.message
    )


def test_a_file_that_another_job_still_copies_is_left_to_that_job(
    spark, tmp_path, folder, monkeypatch
):
    copied = Path("a=x", "b=1", "part-others")
    source = folder / "_temporary" / "0" / "task_1" / copied

    class Disturbed(Command):
        def run_as_planned(self) -> bool:
            done = super().run_as_planned()
            for place in (source, folder / "a=x" / copied):
                place.parent.mkdir(parents=True)
                place.touch()
            return done

    monkeypatch.setattr(execution, "Command", Disturbed)
    sql = f"INSERT INTO attempts.result PARTITION (a = 'x', b = 1) SELECT s.item {JOIN}"
    assert run(spark, tmp_path, sql).status is Status.DONE
    assert (folder / "a=x" / copied).exists()
    source.unlink()
    (folder / "a=x" / copied).unlink()
    monkeypatch.undo()
    assert run(spark, tmp_path, sql).status is Status.DONE
    assert items(spark) == [2, 2]


def test_a_run_that_is_alone_lists_no_folders_of_the_table(spark, tmp_path, folder, monkeypatch):
    monkeypatch.delattr(job_attempt, "move_out")
    sql = f"INSERT INTO attempts.result PARTITION (a = 'x', b = 1) SELECT s.item {JOIN}"
    assert run(spark, tmp_path, sql).status is Status.DONE


def test_a_failing_statement_is_not_hidden_by_a_folder_that_is_gone(spark, folder):
    session = spark.newSession()
    place = InsertedTable(session._jvm.org.apache.hadoop.fs.Path(str(folder)), 2)
    with pytest.raises(ValueError, match="mine"), own_job_attempt(session, [place]):
        shutil.rmtree(folder / "_temporary")
        raise ValueError("mine")
    with pytest.raises(RowsMayBeMissing), own_job_attempt(session, [place]):
        shutil.rmtree(folder / "_temporary")
    for name in SETTINGS:
        assert session.conf.get(name, None) is None


SETTINGS = (
    "mapreduce.job.application.attempt.id",
    "mapreduce.fileoutputcommitter.cleanup.skipped",
)


def test_a_store_that_fails_after_the_statement_fails_nothing(spark, folder, monkeypatch):
    """The rows are committed, so that a retry would add them again."""

    class Unavailable:
        def exists(self, path):
            raise Py4JError("503 Slow Down")

        def delete(self, path, recursive):
            raise Py4JError("503 Slow Down")

    original = _Attempt.mark

    def mark(attempt) -> None:
        original(attempt)
        attempt._files = Unavailable()

    monkeypatch.setattr(_Attempt, "mark", mark)
    session = spark.newSession()
    place = InsertedTable(session._jvm.org.apache.hadoop.fs.Path(str(folder)), 2)
    with own_job_attempt(session, [place]):
        assert session.conf.get(SETTINGS[0]) != "0"
    for name in SETTINGS:
        assert session.conf.get(name, None) is None


@pytest.mark.parametrize(
    ("sql", "mode", "settings"),
    [
        (f"INSERT OVERWRITE attempts.result SELECT s.item, 'x', 1 {JOIN}", "static", {}),
        (f"INSERT OVERWRITE attempts.result SELECT s.item, 'x', 1 {JOIN}", "dynamic", {}),
        (
            f"INSERT OVERWRITE attempts.result PARTITION (a = 'x', b) SELECT s.item, 1 {JOIN}",
            "dynamic",
            {},
        ),
        (
            f"FROM (SELECT s.item {JOIN}) INSERT INTO attempts.result PARTITION (a = 'x', b = 1) "
            "SELECT item INSERT OVERWRITE DIRECTORY '/tmp/none' USING parquet SELECT item",
            "static",
            {},
        ),
        (
            f"INSERT INTO attempts.result SELECT s.item, 'x', 1 {JOIN}",
            "static",
            {"mapreduce.outputcommitter.factory.scheme.file": "org.example.Factory"},
        ),
    ],
    ids=["whole", "whole, dynamic", "some, dynamic", "beside a directory", "a committer"],
)
@pytest.mark.parametrize("folder", ["USING parquet"], indirect=True)
def test_statements_that_write_otherwise_have_no_job_attempt(spark, folder, sql, mode, settings):
    session = spark.newSession()
    session.conf.set("spark.sql.sources.partitionOverwriteMode", mode)
    for name, value in settings.items():
        session.conf.set(name, value)
    assert Command(session, sql, {}).tables_of_inserts() == []
