"""What the pages, the links and the log show with the default settings."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

import pytest

from airflow_hive_opt.commands.main import main
from tests.e2e.views import LOOKS, PICTURES, is_fine, opened

DAG = "default_settings"
LONG = "a_task_that_reads_everything_and_has_a_name_that_no_phone_shows_in_one_line"


@pytest.fixture(scope="module")
def run_id(airflow):
    """The run, whose gate has closed."""
    run_id = airflow.trigger(DAG)
    assert airflow.ended(DAG, run_id, seconds=900) == "failed"
    states = {
        task: airflow.task(DAG, run_id, task)["state"]
        for task in (LONG, "closed_gate", "split.local_task", "wait", "split.map_join")
    }
    assert states == {**dict.fromkeys(states, "success"), "closed_gate": "failed"}
    return run_id


def of(run_id, task):
    return f"/pages/dags/{DAG}/runs/{quote(run_id, safe='')}/tasks/{task}"


# What each page says, and what it does not say.
SAID = {
    "closed_gate": (
        ["Stopped before the join: 30 partitions, limit 1", "30 of 366 partitions kept"],
        ["reads no partitioned table", "not known", "disk of the worker"],
    ),
    LONG: (
        ["PRESERVED_SIDE", "To do: Use an inner join if the result allows it. More"],
        ["Bytes pruned"],
    ),
    "split.map_join": (["Kept 30 of 366 partitions (91.8 % pruned)", "1 to 30 of 30"], []),
    "wait": (["A RequiredPartitionsSensor waits and runs no statement"], ["Try again"]),
}


@pytest.mark.parametrize(("width", "colour"), LOOKS)
@pytest.mark.parametrize("task", SAID)
def test_the_page_of_a_run_has_its_texts(page, airflow, run_id, task, width, colour):
    opened(page, airflow, of(run_id, task), colour, width)
    text = page.locator("body").inner_text()
    said, unsaid = SAID[task]
    assert [each for each in said if each not in text] == []
    assert [each for each in unsaid if each in text] == []
    is_fine(page, airflow, f"first-{task[:12]}-{width}-{colour}")


@pytest.mark.parametrize(("width", "colour"), LOOKS)
def test_the_page_of_a_dag_lists_its_runs(page, airflow, run_id, backfilled, width, colour):
    opened(page, airflow, f"/pages/dags/{DAG}", colour, width)
    is_fine(page, airflow, f"first-dag-{width}-{colour}")
    rows = page.locator("tbody tr")
    assert rows.count() == 3
    assert "stopped before the join: 30 partitions, limit 1" in "".join(rows.all_inner_texts())
    assert page.get_by_role("link", name="split", exact=True).count() == 1
    opened(page, airflow, "/pages/", colour, width)
    is_fine(page, airflow, f"first-all-{width}-{colour}")
    assert page.get_by_role("link", name="sales_of_the_day").count() == 1  # of old dates
    opened(page, airflow, "/pages/dags/backfill_by_day/tasks/sales_of_the_day", colour, width)
    is_fine(page, airflow, f"first-backfill-{width}-{colour}")
    assert page.get_by_label("Only kept partitions").is_checked()
    text = page.locator("body").inner_text()
    assert [day for day in backfilled if day not in text] == []
    axis = page.locator(".chart svg").first.text_content()
    assert re.search(r"2000-11-\d\d", axis)


def test_a_reason_links_to_its_explanation(page, airflow, run_id):
    opened(page, airflow, of(run_id, LONG))
    page.get_by_role("link", name="More about PRESERVED_SIDE").first.click()
    page.wait_for_url("**/hive_opt/pages/reasons#PRESERVED_SIDE")
    shown = page.locator("#PRESERVED_SIDE")
    shown.wait_for()
    assert "Use an inner join if the result allows it." in shown.inner_text()
    is_fine(page, airflow, "reasons-desk-light")


@pytest.mark.parametrize("what", ["descriptor", "explain"])
def test_a_link_without_a_descriptor_leads_to_a_page_that_says_so(page, airflow, run_id, what):
    at = f"/dags/{DAG}/{what}?run_id={quote(run_id)}&task_id=wait"
    opened(page, airflow, at, width="phone")
    text = page.locator("body").inner_text()
    assert "This task instance has written no partition list" in text
    assert "{" not in text
    is_fine(page, airflow, f"first-link-{what}")
    page.get_by_role("link", name="The page of this run").click()
    page.get_by_text("waits and runs no statement").wait_for()
    assert [said for said in page.complaints if "404" not in said] == []
    page.complaints.clear()


@pytest.mark.parametrize("path", ["/pages/dags/no_such", f"/pages/dags/{DAG}/tasks/no_such"])
def test_a_page_that_does_not_exist_says_not_found(page, airflow, run_id, path):
    opened(page, airflow, path)
    assert "Not found: " in page.locator("body").inner_text()
    assert len(page.complaints) == 1  # the browser's own line on the status 404
    page.complaints.clear()


def test_the_tab_in_airflow_begins_with_the_headline(page, airflow, run_id):
    """Airflow's header above it has the names, the state and the times."""
    page.set_viewport_size({"width": 1440, "height": 900})
    task = f"/dags/{DAG}/runs/{quote(run_id)}/tasks/closed_gate/plugin/pruning"
    page.goto(airflow.address + task)
    frame = page.frame_locator("iframe[src*='/hive_opt/']")
    frame.get_by_text("Stopped before the join").wait_for()
    assert frame.locator("main").inner_text().startswith("Stopped before the join")
    assert frame.locator("header").count() == 0
    page.screenshot(path=PICTURES / "first-tab.png")
    page.goto(f"{airflow.address}/plugin/partition-pruning")  # its header names no task
    frame.get_by_role("link", name="closed_gate").click()
    frame.get_by_role("link", name=run_id).click()
    frame.get_by_text("Stopped before the join").wait_for()
    assert frame.locator("header").inner_text().startswith("All tasks")
    assert page.get_by_role("link", name="Pruning", exact=True).count() >= 1


def test_the_html_plan_of_a_statement_opens_without_a_server(page, tmp_path, capsys):
    tables = [
        {
            "name": "default.sales",
            "columns": [["n", "int"]],
            "partition_columns": [["day", "string"]],
        },
        {"name": "default.days", "columns": [["day", "string"]], "total_bytes": 100},
    ]
    catalog, file = tmp_path / "tables.json", tmp_path / "plan.html"
    catalog.write_text(json.dumps({"tables": tables}))
    sql = "SELECT * FROM sales s JOIN days d ON s.day = d.day"
    assert main(["explain", "--catalog", str(catalog), "--format", "html", sql]) == 0
    file.write_text(capsys.readouterr().out)
    page.goto(file.as_uri())
    page.get_by_role("heading", level=1).wait_for()
    text = page.locator("body").inner_text()
    assert "will be pruned" in text
    assert "null" not in text
    assert text.startswith("Plan of a statement\n")  # which is the only name on the way to it
    assert page.get_by_role("navigation").count() == 0
    page.screenshot(path=PICTURES / "first-plan.png", full_page=True)


def test_the_log_of_a_closed_gate_has_no_stack(airflow, run_id):
    (log,) = airflow.logs.glob(f"dag_id={DAG}/run_id=*/task_id=closed_gate/attempt=1.log")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    (failure,) = [each for each in events if "max_partitions is 1" in each["event"]]
    assert failure["event"] == (
        "Task failed with exception: the statement would read 30 partitions, but "
        "max_partitions is 1"
    )
    assert "error_detail" not in failure
    before = events[events.index(failure) - 1]["event"]
    assert before.startswith("kept 30 of 366 partitions (91.8 % pruned): store_sales.")
