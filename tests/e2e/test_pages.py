"""The pages of the plugin in a real browser: how they look, what they load, whom they serve.

The pictures are kept in ``.pictures``, for people to look at.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.services.airflow import USER

PROJECT = Path(__file__).parents[2]
PICTURES = PROJECT / ".pictures"
AXE = PROJECT / "ui" / "node_modules" / "axe-core" / "axe.min.js"
EVIL = "<script>document.title='run'</script>"
SERIOUS = ("serious", "critical")
WIDTHS = {"phone": 390, "desk": 1440}


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


@pytest.fixture(scope="module")
def user(airflow):
    """A browser in which the user has logged in; its pages have one size and colour each."""
    pytest.importorskip("playwright", reason="playwright is not installed")
    from tests.services.browser import browser, log_in, program

    if program() is None:
        pytest.skip("there is no Chromium: `make browser` unpacks Debian's, where apt-get is")
    PICTURES.mkdir(exist_ok=True)
    with browser() as started:
        context = started.new_context(bypass_csp=False)
        page = context.new_page()
        log_in(page, airflow.address, USER, airflow.password)
        yield context


@pytest.fixture
def page(user):
    """A page that has not complained when the test ends, and has asked no other server."""
    page = user.new_page()
    page.set_default_timeout(60_000)
    complaints: list[str] = []
    page.on("console", lambda said: said.type == "error" and complaints.append(said.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: page.asked.append(asked.url))
    page.asked = []
    yield page
    page.close()
    assert complaints == []


def opened(page, airflow, path, colour="light", width=1440):
    page.emulate_media(color_scheme=colour)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{airflow.address}/hive_opt/pages{path}")
    page.get_by_role("heading", level=1).wait_for()
    page.wait_for_load_state("networkidle")
    return page


def paths(run_id, odd_run):
    odd, run = quote(odd_run, safe=""), quote(run_id, safe="")
    return {
        "all": "/",
        "dag": "/dags/odd_names",
        "task": "/dags/odd_names/tasks/join",
        "run": f"/dags/cluster_sales/runs/{run}/tasks/sales_by_category",
        "odd": f"/dags/odd_names/runs/{odd}/tasks/join?map_index=1",
    }


@pytest.mark.parametrize("colour", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("view", ["all", "dag", "task", "run", "odd"])
def test_a_view(page, airflow, cluster_sales, odd_names, view, width, colour):
    """It fits its window, says nothing on the console, and axe-core finds no serious fault."""
    opened(page, airflow, paths(cluster_sales, odd_names)[view], colour, WIDTHS[width])
    page.screenshot(path=PICTURES / f"{view}-{width}-{colour}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width]
    assert page.title() != "run"
    assert {url.split("/hive_opt")[0] for url in page.asked} == {airflow.address}
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    faults = [
        f"{fault['id']}: {fault['nodes'][0]['html'][:200]}"
        for fault in found["violations"]
        if fault["impact"] in SERIOUS
    ]
    assert faults == []


def test_markup_in_names_is_text(page, airflow, cluster_sales, odd_names):
    opened(page, airflow, paths(cluster_sales, odd_names)["odd"])
    text = page.locator("body").inner_text()
    assert "NO_CONDITION_ON_PARTITION_COLUMN" in text
    assert "name=%3Cscript%3Edocument.title" in text or EVIL in text
    page.get_by_role("searchbox").first.fill("plain 1")
    page.wait_for_function("!document.body.innerText.includes('plain 2')")
    assert page.title() != "run"


def test_lists_lead_to_runs(page, airflow, cluster_sales, odd_names):
    opened(page, airflow, "/")
    page.get_by_role("link", name=re.compile("sales_by_category")).first.click()
    page.wait_for_url("**/pages/dags/cluster_sales/tasks/sales_by_category")
    page.get_by_role("link", name=re.compile("manual__")).first.click()
    page.wait_for_url("**/pages/dags/cluster_sales/runs/*/tasks/sales_by_category*")
    page.get_by_text("30 of 366").first.wait_for()


@pytest.mark.parametrize("colour", ["light", "dark"])
def test_tabs_of_airflow(page, airflow, cluster_sales, odd_names, colour):
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


def test_downloads(page, airflow, cluster_sales, odd_names):
    at = paths(cluster_sales, odd_names)["run"]
    found = page.request.get(f"{airflow.address}/hive_opt/api{at}/partitions.csv")
    assert found.headers["content-disposition"].startswith("attachment")
    assert len(found.text().splitlines()) == 31
