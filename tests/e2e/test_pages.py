"""The pages of the plugin in a real browser: how they look, what they load, whom they serve.

The pictures are kept in ``.pictures``, for people to look at.
"""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from tests.e2e.views import COLOURS, LOOKS, PICTURES, is_fine, opened

EVIL = "<script>document.title='run'</script>"


@pytest.fixture(scope="module")
def odd_names(airflow, plain):
    """A run whose partitions, keys and key query have markup in their names."""
    plain.session.sql("CREATE DATABASE IF NOT EXISTS odd")
    plain.session.sql(
        "CREATE TABLE odd.sales (n INT) PARTITIONED BY (name STRING) STORED AS PARQUET"
    )
    plain.session.sql("CREATE TABLE odd.keys (name STRING, n INT) STORED AS PARQUET")
    names = [EVIL, "é & \"quotes'", "%2e%2e/etc", *(f"plain {number}" for number in range(9))]
    frame = plain.session.createDataFrame(
        [(n, name) for n, name in enumerate(names)], "n int, name string"
    )
    frame.write.insertInto("odd.sales", overwrite=False)
    frame.selectExpr("name", "10 - n AS n").write.insertInto("odd.keys")
    run_id = airflow.trigger("odd_names")
    assert airflow.ended("odd_names", run_id) == "success"
    return run_id


def paths(run_id, odd_run):
    odd, run = quote(odd_run, safe=""), quote(run_id, safe="")
    return {
        "all": "/pages/",
        "dag": "/pages/dags/odd_names",
        "task": "/pages/dags/odd_names/tasks/join",
        "run": f"/pages/dags/cluster_sales/runs/{run}/tasks/sales_by_category",
        "odd": f"/pages/dags/odd_names/runs/{odd}/tasks/join?map_index=1",
    }


@pytest.mark.parametrize(("width", "colour"), LOOKS)
@pytest.mark.parametrize("view", ["all", "dag", "task", "run", "odd"])
def test_each_page_fits_its_window_and_has_no_accessibility_fault(
    page, airflow, cluster_sales, odd_names, view, width, colour
):
    """It fits its window, says nothing on the console, and axe-core finds no serious fault."""
    opened(page, airflow, paths(cluster_sales, odd_names)[view], colour, width)
    is_fine(page, airflow, f"{view}-{width}-{colour}")
    assert page.title() != "run"


def test_markup_in_names_is_shown_as_text(page, airflow, cluster_sales, odd_names):
    opened(page, airflow, paths(cluster_sales, odd_names)["odd"])
    text = page.locator("body").inner_text()
    assert "NO_CONDITION_ON_PARTITION_COLUMN" in text
    assert "name=%3Cscript%3Edocument.title" in text or EVIL in text
    page.get_by_role("searchbox").first.fill("plain 1")
    page.get_by_text("plain 2", exact=True).first.wait_for(state="detached")
    assert page.title() != "run"


def test_lists_of_tasks_lead_to_runs(page, airflow, cluster_sales, odd_names):
    opened(page, airflow, "/pages/")
    page.get_by_role("link", name=re.compile("sales_by_category")).first.click()
    page.wait_for_url("**/pages/dags/cluster_sales/tasks/sales_by_category")
    page.get_by_role("link", name=re.compile("manual__")).first.click()
    page.wait_for_url("**/pages/dags/cluster_sales/runs/*/tasks/sales_by_category*")
    page.get_by_text("30 of 366").first.wait_for()


@pytest.mark.parametrize("colour", COLOURS)
def test_the_pages_are_tabs_in_airflow(page, airflow, cluster_sales, odd_names, colour):
    """The pages are tabs of the task instance, the task and the DAG, and a page in the menu."""
    run = quote(cluster_sales)
    page.add_init_script(f"localStorage.setItem('theme', '{colour}')")  # the user's choice
    page.set_viewport_size({"width": 1440, "height": 900})
    for at, text in {
        f"/dags/cluster_sales/runs/{run}/tasks/sales_by_category/plugin/pruning": "30 of 366",
        "/dags/cluster_sales/tasks/sales_by_category/plugin/pruning-of-task": "manual__",
        "/dags/cluster_sales/plugin/pruning-of-dag": "sales_by_category",
        "/plugin/partition-pruning": "odd_names",
    }.items():
        page.goto(airflow.address + at)
        frame = page.frame_locator("iframe[src*='/hive_opt/']")
        frame.get_by_text(text).first.wait_for()
        name = at.rpartition("/")[2]
        assert colour in frame.locator("html").get_attribute("class").split()
        page.screenshot(path=PICTURES / f"tab-{name}-{colour}.png")


def test_partitions_can_be_downloaded_as_files(page, airflow, cluster_sales, odd_names):
    api = f"{airflow.address}/hive_opt" + paths(cluster_sales, odd_names)["run"].replace(
        "/pages/", "/api/"
    )
    run = page.request.get(api).json()
    (start,) = (scan["reference"][0] for scan in run["scans"] if scan["reason"] == "PRUNED")
    found = page.request.get(f"{api}/partitions.csv?scan={start}")
    assert found.headers["content-disposition"].startswith("attachment")
    assert len(found.text().splitlines()) == 31
