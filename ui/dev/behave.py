"""Uses the pages in Chromium as a viewer does.

Search, pages, downloads and filters; a page that Airflow embeds in a sandboxed frame; a run's page
as a file of its own.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, Page, expect

UI = Path(__file__).parents[1]
sys.path[:0] = [str(UI.parent), str(UI / "dev")]

from look import PAGES  # noqa: E402
from serve import BASE, STATIC, partition_page, sample, server  # noqa: E402

from tests.services.browser import browser  # noqa: E402


def partitions(page: Page, origin: str) -> None:
    """Pages, search and download of a partition list."""
    page.goto(f"{origin}{BASE}{PAGES['run']}")
    status = page.locator(".pager [role=status]").first
    expect(status).to_have_text("1 to 100 of 366 partitions")
    page.get_by_role("button", name="Next").first.click()
    expect(status).to_have_text("101 to 200 of 366 partitions")
    page.get_by_label("Search partitions").first.fill("são")
    expect(status).to_have_text("1 to 91 of 91 partitions (of 366 in the list)")
    page.get_by_label("Search partitions").first.fill("no such name")
    expect(page.get_by_text("No partition matches.")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="JSON").first.click()
    assert download.value.suggested_filename == "tpcds.store_sales-partitions.json"
    page.get_by_text("raw.<script>alert(1)</script> (x): 366 kept").click()
    expect(page.get_by_role("columnheader", name="ds", exact=True)).to_have_count(1)


def history(page: Page, origin: str) -> None:
    """Older runs, the charts and the way to a run."""
    page.goto(f"{origin}{BASE}{PAGES['history']}")
    expect(page.get_by_text("100 runs shown")).to_be_visible()
    page.get_by_role("button", name="Older runs").click()
    expect(page.get_by_text("128 runs shown")).to_be_visible()
    expect(page.get_by_role("button", name="Older runs")).to_have_count(0)
    page.get_by_label("Only kept partitions").check()
    page.locator(".chart svg").first.hover()
    expect(page.locator(".tooltip").first).to_contain_text("kept:")
    page.get_by_role("link", name="scheduled__2026-01-31T00:00:00+00:00").click()
    expect(page.get_by_role("heading", name="Scans")).to_be_visible()


def overview(page: Page, origin: str) -> None:
    """The filters, by keyboard, and the way to a DAG."""
    page.goto(f"{origin}{BASE}{PAGES['overview']}")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(5)
    page.get_by_role("button", name="Got worse (1)").press("Enter")
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Nothing pruned (1)").press("Space")
    expect(rows).to_have_count(2)
    page.get_by_label("Filter by DAG or task").fill("nightly")
    expect(rows).to_have_count(1)
    page.get_by_role("link", name="nightly").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("nightly")


def embedded(page: Page, origin: str) -> None:
    """The frame's sandbox has neither downloads nor other windows, as Airflow's."""
    page.goto(f"{origin}/embedding?mode=dark&page={quote(BASE + PAGES['run'])}")
    frame = page.frame_locator("iframe")
    root = frame.locator("html")
    expect(root).to_have_class("dark")
    page.evaluate("document.documentElement.className = 'light'")
    expect(root).to_have_class("light")
    with page.expect_download() as download:
        frame.get_by_role("link", name="CSV").first.click()
    assert download.value.suggested_filename == "tpcds.store_sales-partitions.csv"
    page.context.route("https://spark-history.example.com/**", lambda route: route.fulfill(body=""))
    with page.context.expect_page() as opened:
        frame.get_by_role("link", name="Spark UI").click()
    assert opened.value.url.startswith("https://spark-history.example.com/"), opened.value.url
    page.evaluate("window.addEventListener('popstate', event => { window.went = event.state })")
    frame.get_by_role("link", name="Task instance in Airflow").click()
    page.wait_for_function("window.went")
    assert page.url.endswith(
        "/base/dags/sales_by_category/runs/scheduled__2026-01-31T00:00:00+00:00"
        "/tasks/reports.by_category"
    ), page.url
    assert page.evaluate("window.went.idx") == 1


def alone(page: Page, folder: Path) -> None:
    """A run's page without a server."""
    pruned = [scan for scan in sample("instance")["scans"] if scan["reason"] == "PRUNED"]
    lists = [
        partition_page({"scan": str(scan["reference"][0]), "limit": "1000"}) for scan in pruned
    ]
    data = json.dumps({"kind": "instance", "data": sample("instance"), "partitions": lists})
    file = folder / "run.html"
    file.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>run</title><style>'
        + (STATIC / "pages.css").read_text()
        + '</style></head><body><div id="root"></div><script type="application/json" id="data">'
        + data.replace("<", "\\u003c")
        + '</script><script type="module">'
        + (STATIC / "pages.js").read_text()
        + "</script></body></html>"
    )
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(file.as_uri())
    expect(page.get_by_role("heading", level=1)).to_have_text("reports.by_category")
    status = page.locator(".pager [role=status]").first
    expect(status).to_have_text("1 to 100 of 366 partitions")
    page.get_by_label("Search partitions").first.fill("são")
    expect(status).to_have_text("1 to 91 of 91 partitions (of 366 in the list)")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").first.click()
    text = Path(download.value.path()).read_text()
    assert text.startswith("ds,region,partition,location,rows,bytes\n"), text[:200]
    assert text.count("\n") == 367
    assert page.locator("nav a").count() == 0
    assert [url for url in requests if not url.startswith(("blob:", "file:"))] == [], requests


def _page(chromium: Browser, faults: list[str]) -> Page:
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(10_000)
    page.on(
        "console",
        lambda message: faults.append(message.text) if message.type == "error" else None,
    )
    page.on("pageerror", lambda error: faults.append(str(error)))
    return page


def main() -> int:
    """Returns 1 if a page logs an error; a failed check raises."""
    pages = server()
    threading.Thread(target=pages.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{pages.server_port}"
    faults: list[str] = []
    with browser() as chromium, tempfile.TemporaryDirectory() as folder:
        for check in (partitions, history, overview, embedded):
            check(_page(chromium, faults), origin)
            print(f"{check.__name__}: ok")
        alone(_page(chromium, faults), Path(folder))
        print("alone: ok")
    print("\n".join(faults) or "no errors in the console")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
