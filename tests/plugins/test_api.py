"""The JSON API of the pages, on an API server's application."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from airflow_hive_opt.documents.descriptor import write
from tests.plugins.descriptors import EVIL, descriptor
from tests.plugins.rows import Ran, add, add_dags, figures
from tests.versions.installed import needs_airflow

pytestmark = needs_airflow("3.1")

SQL = "SET x=1;\nSELECT 1 FROM fact f\nJOIN days d ON f.ds = d.ds JOIN fact2 g ON g.k = f.k"
F = {"scan": "f", "alias": "f", "table": "dw.fact", "reference": [23, 27]}
G = {"scan": "g", "alias": "g", "table": "dw.fact2", "reference": [62, 67]}
KINDS = ("backfill", "manual", "scheduled")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("descriptors")


@pytest.fixture(scope="module")
def runs(web, root):
    """Three tasks in two DAGs; the first run is the oldest."""
    from airflow.utils.session import create_session

    from airflow_hive_opt.provider.attempts import instance_path

    whole = (("f", "KEY_SOURCE_NOT_SMALL"),)
    ran = [
        Ran("sales", "join", 50, figures(30, 366, read_bytes=100, pruned_bytes=900)),
        Ran("sales", "join", 49, figures(31, 366, read_bytes=100, pruned_bytes=900), try_number=3),
        Ran("sales", "join", 48, figures(0, 0, "KEY_SOURCE_NOT_SMALL", scans=whole)),
        Ran("sales", "mapped", 48, figures(1, 366, read_bytes=5_000), map_index=0),
        Ran("sales", "mapped", 48, figures(2, 366, read_bytes=5_000), map_index=1),
        Ran("sales", "join", 24 * 40, figures(1, 366)),
        Ran("secret", "join", 10, figures(5, 10, pruned_bytes=7)),
        Ran("sales", "local_task", 48, figures(1, 366, seconds={"local task": 0.25})),
        *(Ran("sales", "at_once", 30, figures(1, 366), kind=kind) for kind in KINDS),
    ]
    uri = instance_path(str(root), "sales", ran[0].run_id, "seen", -1, 2)
    uri.parent.mkdir(parents=True)
    write(descriptor(), uri)
    summary = {
        "decisions": [
            {**F, "reason": "PRUNED", "kept": 250, "total": 1000, "way": "names"},
            {**G, "reason": "PRESERVED_SIDE"},
            "of another version",
        ],
        "reads": [{"table": "dw.fact", "partitions": 250, "files": 250, "bytes": 5}],
        "work": {
            "local task": None,
            "map join": {"metastore_calls": 7, "partitions_fetched": 250, "files_listed": 250},
        },
        "eliminated": [{"scan": "d", "alias": "d", "table": "dw.days", "reference": [35, 39]}],
        "index_trial": {"used": 5.2, "left_out": 4.1, "untouched": None, "skipped_keys": {}},
        "application_id": "local-1",
    }
    xcoms = {"hive_opt_descriptor": str(uri), "return_value": summary}
    scans = (("f", "PRUNED"), ("g", "PRESERVED_SIDE"))
    rendered = {"sql": SQL, "statement": "SELECT 2"}
    seen = figures(250, 1000, scans=scans)
    ran.append(Ran("sales", "seen", 50, seen, try_number=2, xcoms=xcoms, rendered=rendered))
    swept = {**xcoms, "hive_opt_descriptor": str(uri).replace("/2.json", "/1.json")}
    ran.append(Ran("sales", "swept", 50, seen, xcoms=swept))
    uri.with_name("3.json").write_text('{"version": 1}')
    old = {**xcoms, "hive_opt_descriptor": str(uri).replace("/2.json", "/3.json")}
    ran.append(Ran("sales", "old", 50, seen, xcoms=old))
    named = {**xcoms, "hive_opt_descriptor": "/etc/passwd"}
    ran.append(Ran("sales", "named", 50, seen, xcoms=named))
    with create_session() as session:
        add_dags(session, ["sales"])
        add_dags(session, ["secret"], bundle="of_another_team")
        add(session, ran)
    return ran


@pytest.fixture
def ask(web, runs, root, monkeypatch):
    monkeypatch.setenv("AIRFLOW__HIVE_OPT__DESCRIPTOR_PATH", str(root))
    client, login = web

    def ask(path, status=200, headers=login):
        answer = client.get(f"/hive_opt{path}", headers=headers)
        assert status in (None, answer.status_code), answer.text
        return answer

    return ask


def of_run(run, task):
    return f"/api/dags/sales/runs/{quote(run.run_id, safe='')}/tasks/{task}"


def test_the_list_of_tasks_covers_thirty_days(ask):
    found = ask("/api/tasks").json()
    assert found["days"] == 30
    tasks = {(task["dag_id"], task["task_id"]): task for task in found["tasks"]}
    assert sum(task["runs"] for task in found["tasks"]) == found["runs"]
    first = found["tasks"][0]
    assert first["read_bytes"] is None  # who does not know may have read everything
    # the database has runs of other tests too
    ours = [task for task in found["tasks"] if task["dag_id"] in ("sales", "secret")]
    known = [task["task_id"] for task in ours if task["read_bytes"] is not None]
    assert known[0] == "mapped"
    mapped = tasks["sales", "mapped"]
    assert (mapped["read_bytes"], mapped["runs"]) == (10_000, 2)
    local_task = tasks["sales", "local_task"]  # it has read nothing of the big table
    assert (local_task["runs"], local_task["pruned_partitions"]) == (1, 0)
    join = tasks["sales", "join"]
    assert (join["runs"], join["pruned_bytes"], join["trend"]) == (3, 1800, "worse")
    assert join["pruned_partitions"] == 336 + 335
    assert "f: PRUNED until run scheduled__" in join["last"]["change"]
    assert tasks["secret", "join"]["trend"] == "pruned"
    of_one = ask("/api/tasks?dag_id=secret").json()
    assert [task["dag_id"] for task in of_one["tasks"]] == ["secret"]


def test_the_number_of_sql_statements_does_not_grow_with_runs_or_tasks(ask):
    """Neither with runs nor with tasks."""
    from airflow.settings import engine
    from airflow.utils.session import create_session
    from sqlalchemy import event

    said = []

    def count(*statement):
        said.append(statement[2])

    def counted():
        found = []
        event.listen(engine, "before_cursor_execute", count)
        for path in ("/api/tasks?dag_id=many", "/api/dags/many/tasks/task_1"):
            said.clear()
            ask(path)
            found.append(len(said))
        event.remove(engine, "before_cursor_execute", count)
        return found

    with create_session() as session:
        add_dags(session, ["many"])
        add(session, [Ran("many", "task_1", 400, figures(1, 2))])
    counted()  # the first request of a kind reads more
    few = counted()
    with create_session() as session:
        ran = [
            Ran("many", f"task_{task}", hour, figures(1, 2))
            for task in range(9)
            for hour in range(90)
        ]
        add(session, ran)
    assert len(ask("/api/tasks?dag_id=many").json()["tasks"]) == 9
    assert counted() == few


def test_the_history_of_a_task_lists_its_runs_and_changes(ask, runs):
    found = ask("/api/dags/sales/tasks/join").json()
    assert [run["run_id"] for run in found["runs"]] == [runs[at].run_id for at in (2, 1, 0, 5)]
    changes = [run["change"] for run in found["runs"]]
    assert (
        changes == [f"f: PRUNED until run {runs[1].run_id}, then KEY_SOURCE_NOT_SMALL"] + [None] * 3
    )
    assert [run["try_number"] for run in found["runs"]] == [1, 3, 1, 1]
    assert not found["more"]
    page = ask("/api/dags/sales/tasks/join?limit=2").json()
    assert (len(page["runs"]), page["more"]) == (2, True)
    before = quote(page["runs"][-1]["run_after"])
    rest = ask(f"/api/dags/sales/tasks/join?limit=2&before={before}").json()
    assert [run["run_id"] for run in rest["runs"]] == [runs[0].run_id, runs[5].run_id]
    mapped = ask("/api/dags/sales/tasks/mapped").json()["runs"]
    assert [(run["map_index"], run["change"]) for run in mapped] == [(1, None), (0, None)]
    run_id = quote(mapped[0]["run_id"])
    cut = f"/api/dags/sales/tasks/mapped?limit=1&before={quote(mapped[0]['run_after'])}"
    (other,) = ask(f"{cut}&before_run_id={run_id}&before_map_index=1").json()["runs"]
    assert other["map_index"] == 0


def test_runs_of_the_same_date_are_paged_without_loss(ask):
    """A backfill and a manual run may have the date of a scheduled one."""
    path, found = "/api/dags/sales/tasks/at_once?limit=1", []
    page = ask(path).json()
    while page["runs"]:
        (run,) = page["runs"]
        found.append(run["run_id"].partition("__")[0])
        last = f"&before={quote(run['run_after'])}&before_run_id={quote(run['run_id'])}"
        page = ask(f"{path}{last}&before_map_index={run['map_index']}").json()
    assert found == sorted(KINDS, reverse=True)


def test_one_run_has_its_scans_stages_and_reads(ask, runs):
    found = ask(of_run(runs[0], "seen")).json()
    assert (found["descriptor"], found["try_number"], found["state"]) == ("there", 2, "success")
    f, g = found["scans"]
    assert (f["kept"], f["total"], f["path"], f["way"]) == (250, 1000, "fast", "names")
    assert f["sources"][0]["keys"] == 250
    assert EVIL in f["sources"][0]["sql"]
    assert (f["place"]["line"], f["place"]["column"]) == (2, 15)
    assert SQL[f["place"]["start"] : f["place"]["stop"]] == "fact"
    assert SQL[g["place"]["start"] : g["place"]["stop"]] == "fact2"
    assert (g["kept"], g["reason"]) == (None, "PRESERVED_SIDE")
    assert [phase["name"] for phase in found["phases"]] == ["local task", "map join"]
    assert [phase["work"] and phase["work"]["metastore_calls"] for phase in found["phases"]] == [
        None,
        7,
    ]
    assert found["reads"][0]["total_bytes"] is None
    assert found["index_trial"] == {"used": 5.2, "left_out": 4.1, "untouched": None}
    assert found["statement"] == {"user": SQL, "ran": "SELECT 2", "cut": False}
    assert found["headline"].startswith("kept 250 of 1,000 partitions (75.0 % pruned)")


@pytest.mark.parametrize(
    ("task", "where"), [("swept", "deleted"), ("old", "unreadable"), ("named", "outside")]
)
def test_the_summary_is_shown_after_the_descriptor_is_deleted(ask, runs, task, where):
    found = ask(of_run(runs[0], task)).json()
    assert (found["descriptor"], found["kept"], found["total"]) == (where, 250, 1000)
    assert [scan["alias"] for scan in found["scans"]] == ["f", "g"]
    assert "outer join" in found["scans"][1]["sentence"]
    assert found["headline"] == "kept 250 of 1,000 partitions (75.0 % pruned)"
    ask(f"{of_run(runs[0], task)}/partitions?scan=23", 404)


def test_partitions_are_paged_and_searched(ask, runs):
    at = f"{of_run(runs[0], 'seen')}/partitions"
    page = ask(f"{at}?scan=23&limit=10&offset=245").json()
    assert (page["scan"], page["table"], page["reference"]) == ("f", "dw.fact", [23, 27])
    assert (page["found"], page["total"], len(page["partitions"])) == (250, 250, 5)
    one = ask(f"{at}?scan=23&search=DS=2026-01-00").json()
    assert one["found"] == 10
    (null,) = ask(f"{at}?scan=23&search=__HIVE_DEFAULT").json()["partitions"]
    assert null["values"] == [None, EVIL]
    assert (
        ask(f"{at}?scan=23&search=%3D1%2B1").json()["found"] == 249
    )  # the value, not its escaped name
    ask(f"{at}?scan=62", 404)  # it was not pruned
    ask(at, 422)
    ask(f"{at}?scan=23&limit=100000", 422)


def test_partitions_are_downloaded_as_json_and_csv(ask, runs):
    at = f"{of_run(runs[0], 'seen')}/partitions"
    listed = ask(f"{at}.json?scan=23").json()
    assert len(listed) == 250
    text = ask(f"{at}.csv?scan=23")
    assert text.headers["content-disposition"] == 'attachment; filename="partitions.csv"'
    lines = text.text.splitlines()
    assert lines[0] == "ds,region,partition,location,rows,bytes"
    assert lines[1].startswith("2026-01-000,'=1+1,")
    assert len(lines) == 251


def test_malformed_ids_are_refused(ask, runs):
    ask("/api/dags/sales/runs/..%2F..%2Fetc/tasks/passwd", 404)
    ask(f"{of_run(runs[0], 'seen')}?map_index=-7", 422)
    ask("/api/dags/sales/tasks/join?before=2026-01-01T00:00:00", 422)


@pytest.mark.parametrize(
    "path",
    [
        "/api/tasks",
        "/api/dags/sales/tasks/join",
        "/api/dags/sales/runs/r/tasks/t",
        "/api/dags/sales/runs/r/tasks/t/partitions",
        "/api/dags/sales/runs/r/tasks/t/partitions.csv",
        "/api/dags/sales/runs/r/tasks/t/partitions.json",
        "/pages/",
        "/pages/dags/sales",
        "/pages/dags/sales/tasks/join",
        "/pages/dags/sales/runs/r/tasks/t",
        "/openapi.json",
    ],
)
def test_requests_without_a_login_are_refused(ask, path):
    ask(path, 401, headers={})


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
def test_fastapis_pages_with_third_party_scripts_are_off(ask, path):
    ask(path, 404)


def test_the_html_page_runs_only_this_packages_script(ask):
    page = ask("/pages/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'" in policy
    assert "unsafe" not in policy
    assert '<div id="root" data-base="/hive_opt">' in page.text
    assert page.text.count("<script") == 1
    ask("/static/hive_opt.py", 404)
    ask("/static/..%2Fhive_opt.py", 404)


def test_the_api_has_an_openapi_document(ask):
    description = ask("/openapi.json").json()
    assert description["servers"] == [{"url": "/hive_opt"}]
    paths = description["paths"]
    assert "/openapi.json" not in paths
    assert "/api/dags/{dag_id}/runs/{run_id}/tasks/{task_id}" in paths
    assert not any(path.startswith("/pages") for path in paths)
    assert json.dumps(paths).count("PartitionPage") == 1


@pytest.fixture
def viewer(web, runs):
    """The login of a user whose team may not read the DAG ``secret``."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.team import Team
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        bundle = session.scalar(
            select(DagBundleModel).where(DagBundleModel.name == "of_another_team")
        )
        bundle.teams = [Team(name="west")]
    user = SimpleAuthManagerUser(username="ann", role="viewer", teams=["east"])
    yield {"Authorization": f"Bearer {get_auth_manager().generate_jwt(user)}"}
    with create_session() as session:
        session.delete(session.scalar(select(Team).where(Team.name == "west")))


@needs_airflow("3.2")
def test_a_viewer_sees_only_dags_that_the_viewer_may_read(ask, runs, viewer):
    found = ask("/api/tasks", headers=viewer).json()
    assert "secret" not in {task["dag_id"] for task in found["tasks"]}
    assert found["runs"] == sum(task["runs"] for task in found["tasks"])
    ask("/api/tasks?dag_id=secret", 404, headers=viewer)
    ask("/api/dags/sales/tasks/join", headers=viewer)
    ask("/pages/dags/sales", headers=viewer)
    ask("/pages/", headers=viewer)
    run = f"/dags/secret/runs/{quote(runs[6].run_id, safe='')}/tasks/join"
    for path in (
        "/api/dags/secret/tasks/join",
        f"/api{run}",
        f"/api{run}/partitions",
        f"/api{run}/partitions.csv",
        f"/api{run}/partitions.json",
        "/pages/dags/secret",
        "/pages/dags/secret/tasks/join",
        f"/pages{run}",
    ):
        ask(path, 403, headers=viewer)
        assert ask(path.replace("secret", "sales"), None, headers=viewer).status_code != 403
