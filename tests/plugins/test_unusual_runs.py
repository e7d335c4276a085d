"""Runs that stand out: backfills, closed gates, lists that are not there, tasks of other kinds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from airflow_hive_opt.documents.descriptor import write
from airflow_hive_opt.documents.report import descriptor_summary, headline
from tests.plugins.descriptors import descriptor
from tests.plugins.rows import Ran, add, add_dags, figures
from tests.versions.installed import needs_airflow

pytestmark = needs_airflow("3.1")

DAG = "unusual"
STOPPED = "250 partitions, limit 1"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """``AIRFLOW_HOME``; nothing sets ``[hive_opt] descriptor_path``."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def ran(web, root):
    from airflow.utils.session import create_session

    from airflow_hive_opt.provider.attempts import instance_path

    def uri(run, try_number=1):
        folder = str(root / "hive_opt_descriptors")
        return instance_path(folder, DAG, run.run_id, run.task_id, run.map_index, try_number)

    found = descriptor()
    gate = {**descriptor_summary(found, "/gone/1.json"), "headline": headline(found)}
    gate = {"hive_opt_summary": {**gate, "stopped": STOPPED}, "hive_opt_descriptor": "/gone/1.json"}
    closed = replace(figures(250, 1000, seconds={"local task": 1.0}), stopped=STOPPED)
    years = 24 * 365 * 20
    old = figures(1, 14, pruned_bytes=130, estimated=True)
    by_name = {
        "old": Ran(DAG, "old", years, old, kind="backfill", started=5),
        "before": Ran(DAG, "old", 24 * 40, figures(14, 14), started=24 * 40),
        "closed": Ran(DAG, "closed", 4, closed, xcoms=gate, state="failed"),
        "here": Ran(DAG, "here", 3, figures(250, 1000)),
        "on_worker": Ran(DAG, "on_worker", 3, figures(250, 1000)),
        "sensor": Ran(DAG, "sensor", 3, None, operator="RequiredPartitionsSensor"),
        "python": Ran(DAG, "python", 3, None, operator="PythonOperator"),
        "early": Ran(DAG, "early", 3, None, state="running"),
        "g.local_task": Ran(DAG, "g.local_task", 3, figures(2, 9, seconds={"local task": 1.0})),
        "g.map_join": Ran(DAG, "g.map_join", 3, figures(2, 9, read_bytes=8, pruned_bytes=28)),
        "h.local_task": Ran(DAG, "h.local_task", 2, closed, state="failed"),
        "h.map_join": Ran(DAG, "h.map_join", 30, figures(2, 9)),
    }
    for name in ("here", "on_worker"):
        run = by_name[name]
        by_name[name] = replace(run, xcoms={"hive_opt_descriptor": str(uri(run))})
    here = Path(str(uri(by_name["here"])).removeprefix("file://"))
    here.parent.mkdir(parents=True)
    write(found, uri(by_name["here"]))
    with create_session() as session:
        add_dags(session, [DAG])
        add(session, list(by_name.values()))
    return by_name


@pytest.fixture
def ask(web, ran, root, monkeypatch):
    monkeypatch.delenv("AIRFLOW__HIVE_OPT__DESCRIPTOR_PATH", raising=False)
    monkeypatch.setenv("AIRFLOW_HOME", str(root))
    client, login = web

    def ask(path, status=200, **headers):
        answer = client.get(f"/hive_opt{path}", headers={**login, **headers})
        assert answer.status_code == status, answer.text
        return answer

    return ask


def of(run):
    return f"/api/dags/{DAG}/runs/{quote(run.run_id, safe='')}/tasks/{run.task_id}"


def row(ask, name):
    tasks = ask(f"/api/tasks?dag_id={DAG}").json()["tasks"]
    return next(task for task in tasks if name in (task["group"], task["task_id"]))


def test_a_backfill_of_old_dates_is_listed_by_its_start_date(ask, ran):
    found = row(ask, "old")
    assert (found["runs"], found["last"]["run_id"]) == (1, ran["old"].run_id)
    assert found["last"]["run_after"] < "2010"
    assert (found["pruned_bytes"], found["estimated"]) == (130, True)
    runs = ask(f"/api/dags/{DAG}/tasks/old").json()["runs"]
    assert [run["run_id"] for run in runs] == [ran["before"].run_id, ran["old"].run_id]


def test_a_run_with_a_closed_gate_shows_the_gate_and_its_scan(ask, ran):
    found = ask(of(ran["closed"])).json()
    assert found["headline"] == f"stopped before the join: {STOPPED}"
    assert (found["stopped"], found["state"]) == (STOPPED, "failed")
    assert [(scan["table"], scan["kept"], scan["total"]) for scan in found["scans"]] == [
        ("dw.fact", 250, 1000),
        ("dw.fact2", None, None),
    ]
    assert row(ask, "closed")["last"]["stopped"] == STOPPED


def test_partitions_in_the_default_descriptor_folder_are_shown(ask, ran):
    found = ask(of(ran["here"])).json()
    assert (found["descriptor"], found["descriptor_note"]) == ("there", "")
    assert ask(f"{of(ran['here'])}/partitions?scan=23").json()["total"] == 250


def test_a_descriptor_on_a_workers_disk_has_a_note_about_descriptor_path(ask, ran):
    found = ask(of(ran["on_worker"])).json()
    assert found["descriptor"] == "elsewhere"
    assert "on the disk of the worker" in found["descriptor_note"]
    assert "set [hive_opt] descriptor_path" in found["descriptor_note"]


@pytest.mark.parametrize("page", ["descriptor", "explain"])
def test_a_link_without_a_descriptor_leads_to_a_page(ask, ran, page):
    run = quote(ran["on_worker"].run_id)
    at = f"/dags/{DAG}/{page}?run_id={run}&task_id=on_worker"
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    answer = ask(at, 404, **browser)
    assert answer.headers["content-type"].startswith("text/html")
    assert 'data-message="the partition list is not on the API server' in answer.text
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert ask(at, 404).json()["detail"].startswith("the partition list is not on the API")
    incomplete = ask(f"/dags/{DAG}/{page}", 422, **browser)
    assert "this address names no run of a task" in incomplete.text
    assert ask(f"/dags/{DAG}/{page}", 422).json()["detail"]
    logged_out = ask(at, 401, Authorization="", **browser)
    assert "log in to Airflow" in logged_out.text
    evil = ask(f"/pages/dags/{DAG}/<script>alert(1)</script>", 404, **browser)
    assert evil.text.count("<script") == 1


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("sensor", "a RequiredPartitionsSensor waits and runs no statement, so there is nothing"),
        ("python", "there is nothing to show here: PythonOperator has left no figures"),
        ("early", "there is nothing to show yet: the figures of a run appear when"),
    ],
)
def test_a_task_without_a_summary_has_a_note(ask, ran, name, note):
    assert ask(of(ran[name])).json()["note"].startswith(note)
    found = ask(f"/api/dags/{DAG}/tasks/{name}").json()
    assert (found["runs"], found["note"][: len(note)]) == ([], note)


@pytest.mark.parametrize(
    "path",
    [
        "/api/tasks?dag_id=no_such",
        f"/api/dags/{DAG}/tasks/no_such",
        "/api/dags/no_such/tasks/old",
        f"/api/dags/{DAG}/runs/no_such/tasks/old",
    ],
)
def test_ids_that_do_not_exist_are_not_found(ask, path):
    assert ask(path, 404).json()["detail"].startswith("not found: ")


def test_the_two_tasks_of_a_task_group_are_one_row(ask, ran):
    found = row(ask, "g")
    assert (found["task_id"], found["runs"], found["pruned_partitions"]) == ("g.map_join", 1, 7)
    assert (found["read_bytes"], found["pruned_bytes"]) == (8, 28)
    ids = [task["task_id"] for task in ask(f"/api/tasks?dag_id={DAG}").json()["tasks"]]
    assert "g.local_task" not in ids
    closed = row(ask, "h")  # its last local task has closed the gate, so no map join ran after it
    assert (closed["task_id"], closed["last"]["stopped"]) == ("h.local_task", STOPPED)
