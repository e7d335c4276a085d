"""A real browser without a window: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

# `make browser` unpacks it there where the machine has none.
UNPACKED = Path(sys.prefix, "share", "chromium")
_PROGRAM = "chromium-headless-shell"


def program() -> Path | None:
    """The machine's own browser, or the unpacked one; ``None`` if there is neither."""
    for name in (_PROGRAM, "chromium"):
        if found := shutil.which(name):
            return Path(found)
    unpacked = UNPACKED / "usr" / "lib" / "chromium" / _PROGRAM
    return unpacked if unpacked.exists() else None


@contextmanager
def browser() -> Iterator[Browser]:
    """The browser until the block ends; :func:`program` must have found one."""
    found = program()
    assert found is not None
    environment = dict(os.environ)
    if found.is_relative_to(UNPACKED):
        libraries = {str(path.parent) for path in UNPACKED.glob("usr/lib/*-linux-gnu/**/*.so*")}
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(sorted(libraries))
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=found,
            # root, as in containers, can't have it; and only our own pages are opened
            chromium_sandbox=False,
            env=environment,
        )
        try:
            yield started
        finally:
            started.close()


def log_in(page: Page, address: str, user: str, password: str) -> None:
    """Fills in the login form of the Airflow at ``address``, and waits for its first page."""
    page.set_default_timeout(60_000)
    page.goto(address)
    page.get_by_label("Username").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Dags").first.wait_for()
