"""Opens the plugin's pages in a browser, keeps a picture of each, and checks what holds for all."""

from __future__ import annotations

from pathlib import Path

PROJECT = Path(__file__).parents[2]
PICTURES = PROJECT / ".pictures"
WIDTHS = {"phone": 390, "desk": 1440}
COLOURS = ("light", "dark")
LOOKS = (("phone", "light"), ("desk", "dark"))
"""Each width and each colour once."""
_AXE = PROJECT / "ui" / "node_modules" / "axe-core" / "axe.min.js"
_SERIOUS = ("serious", "critical")


def opened(page, airflow, path, colour="light", width="desk"):
    """The page below the plugin's path, once it has loaded."""
    page.emulate_media(color_scheme=colour)
    page.set_viewport_size({"width": WIDTHS[width], "height": 900})
    page.goto(f"{airflow.address}/hive_opt{path}")
    page.get_by_role("heading", level=1).wait_for()
    page.locator(".loading").first.wait_for(state="detached")
    page.wait_for_load_state("networkidle")
    return page


def is_fine(page, airflow, name):
    """The page fits its window and asks no other server, and axe-core finds no serious fault."""
    page.screenshot(path=PICTURES / f"{name}.png", full_page=True)
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert {url.split("/hive_opt")[0] for url in page.asked} == {airflow.address}
    page.evaluate(_AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    faults = [
        f"{fault['id']}: {fault['nodes'][0]['html'][:200]}"
        for fault in found["violations"]
        if fault["impact"] in _SERIOUS
    ]
    assert faults == []
