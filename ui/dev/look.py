"""Opens each page with sample data in Chromium and writes screenshots to a folder.

There is one screenshot for each page, colour mode and width. The output reports errors in the
console, violations of the content security policy and faults that axe-core finds.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

UI = Path(__file__).parents[1]
sys.path[:0] = [str(UI.parent), str(UI / "dev")]

from serve import BASE, sample, server  # noqa: E402

from tests.services.browser import browser  # noqa: E402

AXE = UI / "node_modules" / "axe-core" / "axe.min.js"
RUN = quote("scheduled__2026-01-31T00:00:00+00:00")
PAGES = {
    "overview": "/pages/",
    "dag": "/pages/dags/sales_by_category",
    "empty": "/pages/dags/none",
    "history": "/pages/dags/sales_by_category/tasks/reports.by_category",
    "run": f"/pages/dags/sales_by_category/runs/{RUN}/tasks/reports.by_category"
    "?map_index=%7BMAP_INDEX%7D",
    "simple": "/pages/dags/sales/runs/"
    + quote("manual__2026-02-01T08:15:00.123456+00:00_Xy7")
    + "/tasks/by_month?map_index=3",
    "whole": "/pages/dags/nightly/runs/backfill__2026-01-15/tasks/customers_without_orders",
    "unauthorized": "/pages/dags/unknown",
    "forbidden": "/pages/dags/forbidden",
    "stopped": "/pages/dags/sales/runs/stopped/tasks/" + sample("stopped")["task_id"],
    "sensor": "/pages/dags/sales/runs/r/tasks/a_sensor",
    "reasons": "/pages/reasons#PRESERVED_SIDE",
    "link": "/dags/sales/descriptor?run_id=stopped&task_id=t",
    "missing": "/pages/dags/a/runs/b/tasks/c",
    "lost": "/pages/nothing/here",
}
EXPECTED = ("status of 401", "status of 403", "status of 404")


def look(chromium: Browser, origin: str, folder: Path, mode: str, width: int) -> list[str]:
    """Screenshots and faults of all pages in one mode and width."""
    faults: list[str] = []
    context = chromium.new_context(
        viewport={"width": width, "height": 900}, color_scheme=mode, timezone_id="Europe/Berlin"
    )
    context.add_init_script(path=AXE)
    for name, path in PAGES.items():
        where = f"{name}-{mode}-{width}"
        found = _look_at(context, f"{origin}{BASE}{path}", folder / f"{where}.png")
        faults += [f"{where}: {fault}" for fault in found]
    context.close()
    return faults


def _look_at(context: BrowserContext, address: str, screenshot: Path) -> list[str]:
    faults: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(x in message.text for x in EXPECTED):
            faults.append(f"{message.type}: {message.text}")

    page = context.new_page()
    page.on("console", note)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append(f"dialog: {dialog.message}"))
    page.goto(address)
    page.wait_for_selector("h1")
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(400)
    page.screenshot(path=screenshot, full_page=True)
    overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    if overflow > 0:
        faults.append(f"{overflow} px wider than the window")
    faults += _axe(page)
    page.close()
    return faults


def _axe(page: Page) -> list[str]:
    for details in page.query_selector_all("details"):
        details.evaluate("each => { each.open = true }")
    page.wait_for_timeout(200)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"axe {each['impact']} {each['id']}: {node['target']} {node['failureSummary']}"
        for each in found["violations"]
        for node in each["nodes"][:3]
    ]


def main() -> int:
    """Returns 1 if there are faults."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    pages = server()
    threading.Thread(target=pages.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{pages.server_port}"
    with browser() as chromium:
        faults = [
            fault
            for mode in ("light", "dark")
            for width in (1440, 390)
            for fault in look(chromium, origin, folder, mode, width)
        ]
    print("\n".join(faults) or "no faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
