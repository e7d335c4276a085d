"""The tutorial's statements and its first DAG, from the page, on a real Spark."""

from __future__ import annotations

import re
from datetime import datetime, timezone

import pytest

from airflow_hive_opt.commands.main import main
from tests.pages import PROJECT, blocks
from tests.versions.installed import needs_airflow

PAGE = (PROJECT / "docs" / "getting-started" / "tutorial.md").read_text()
TABLES = ("days", "visits", "visits_by_page")


@pytest.fixture(scope="module")
def files(spark, tmp_path_factory):
    """A folder with the page's SQL files and its first DAG; the tables are there."""
    folder = tmp_path_factory.mktemp("tutorial")
    (folder / "dags").mkdir()
    for block in blocks(PAGE):
        named = re.match(r"-- (\S+\.sql)\n", block.text)
        if named:
            (folder / named[1]).write_text(block.text)
    dag = next(block for block in blocks(PAGE) if block.language == "python")
    (folder / "dags" / "weekend_visits.py").write_text(dag.text)
    spark.sql("USE default")
    for table in TABLES:
        assert main(["run", "-f", str(folder / f"{table}.sql")]) == 0
    yield folder
    for table in TABLES:
        spark.sql(f"DROP TABLE IF EXISTS {table}")


def shown(text: str) -> str:
    """The first output block of the page that has this text."""
    return next(
        block.text for block in blocks(PAGE) if block.words == ("text",) and text in block.text
    )


def test_explain_and_run_print_what_the_page_shows(files, capfd):
    assert main(["explain", "-f", str(files / "report.sql")]) == 0
    assert shown("PARTITION PRUNING") in capfd.readouterr().out
    assert main(["run", "-f", str(files / "report.sql")]) == 0
    printed = capfd.readouterr()
    assert printed.out.startswith("page\tvisits\tseconds\n")
    assert printed.err.splitlines()[-1] == shown("kept 2 of 90")


def test_the_tutorials_example_of_an_unpruned_scan_has_its_reason(files, capfd):
    (sql,) = [block.text for block in blocks(PAGE) if "OR v.visit = 1" in block.text]
    assert main(["explain", sql]) == 0
    assert "v (default.visits): MIXED_WITH_DATA_COLUMNS" in capfd.readouterr().out


def test_the_tutorials_explain_command_binds_the_parameter(files, capfd):
    (command,) = [
        line.split()[1:]
        for block in blocks(PAGE)
        for line in block.text.splitlines()
        if "--param" in line
    ]
    at = command.index("-f") + 1
    assert main([*command[:at], str(files / command[at]), *command[at + 1 :]]) == 0
    printed = capfd.readouterr()
    assert "v (default.visits): PRUNED" in printed.out
    assert "CAST('2026-02-16' AS DATE)" in printed.out
    assert printed.err == ""


@needs_airflow("3.0")
def test_the_dag_of_the_tutorial_writes_one_partition(spark, files, tmp_path, monkeypatch):
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.db import initdb
    from airflow.utils.session import create_session

    from tests.operators.dag_bags import DagBag, sync_bag_to_db

    monkeypatch.setenv("AIRFLOW__HIVE_OPT__DESCRIPTOR_PATH", str(tmp_path))
    initdb()
    bag = DagBag(files / "dags" / "weekend_visits.py")
    with create_session() as session:
        session.merge(DagBundleModel(name="tutorial"))
    sync_bag_to_db(bag, "tutorial", "1")
    monday = datetime(2026, 2, 16, tzinfo=timezone.utc)
    found = bag.dags["weekend_visits"].test(logical_date=monday)
    assert found.state == "success"
    spark.sql("REFRESH TABLE visits_by_page")
    rows = spark.sql("SELECT until, sum(visits) FROM visits_by_page GROUP BY until").collect()
    assert [tuple(row) for row in rows] == [("2026-02-16", 200)]
