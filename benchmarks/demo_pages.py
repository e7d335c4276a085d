"""The pages of the demo's run: a picture of one, and the API server that shows them.

python benchmarks/demo_pages.py
"""

from __future__ import annotations

import json
import os
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from airflow_hive_opt.pages.static_files import STATIC
from tests.services.browser import browser, log_in, program
from tests.services.processes import HOST, ServiceError, free_port, listens, server

PROJECT = Path(__file__).resolve().parents[1]
DEMO = PROJECT / ".demo"
HOME = DEMO / "airflow"
PICTURE = DEMO / "page.png"
USER = "admin"
_PORT = 8080
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PASSWORDS = HOME / "simple_auth_manager_passwords.json.generated"


def environment() -> dict[str, str]:
    """The variables of the demo's Airflow."""
    return {
        **os.environ,
        "AIRFLOW_HOME": str(HOME),
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
        "AIRFLOW__HIVE_OPT__WAREHOUSE": str(DEMO / "warehouse"),
        "AIRFLOW__HIVE_OPT__DESCRIPTOR_PATH": str(HOME / "hive_opt_descriptors"),
    }


def show(run_id: str) -> None:
    """Leaves a picture of the run's page, and says where the pages are."""
    if not (STATIC / "pages.js").exists():
        print("    no page of the run: its script is missing (make pages)")
        return
    if program() is None:
        print("    no picture of the page: this machine has no Chromium (make browser)")
    else:
        try:
            with _api_server(free_port()) as address:
                _photograph(address, _path(run_id))
            print(f"    a picture of the run's page: {PICTURE}")
        except ServiceError as error:
            print(f"    no picture of the page: {error}")
    print(f"    the page itself: make demo-pages, then http://localhost:{_PORT}{_path(run_id)}")


def serve() -> None:
    """Runs the API server until a signal ends it, with or without a terminal."""
    if not HOME.exists():
        sys.exit("there is no run to show yet: make demo")
    port = free_port() if listens(_PORT) else _PORT
    for kind in _ENDING:
        signal.signal(kind, _end)  # a shell's background job ignores Ctrl-C unless it asks for it
    with _api_server(port) as address:
        password = json.loads(_PASSWORDS.read_text())[USER]
        where = f"{address}/hive_opt/pages/ (user {USER}, password {password}, Ctrl-C ends it)"
        print(f"==> {where}", flush=True)
        while True:
            signal.pause()


def _end(*_: object) -> None:
    """Leaves ``serve``, which ends the server; another signal must not interrupt that."""
    for kind in _ENDING:
        signal.signal(kind, signal.SIG_IGN)
    sys.exit(0)


def _path(run_id: str) -> str:
    run = quote(run_id, safe="")
    return f"/hive_opt/pages/dags/tpcds_star_join/runs/{run}/tasks/sales_by_category"


@contextmanager
def _api_server(port: int) -> Iterator[str]:
    address = f"http://{HOST}:{port}"
    variables: Mapping[str, str] = {
        **environment(),
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": address,
    }
    command = [str(Path(sys.executable).parent / "airflow"), "api-server"]
    command += ["--host", HOST, "--port", str(port), "--workers", "1"]
    with server(
        command, DEMO / "api-server.log", lambda: _answers(address), timeout=180, env=variables
    ):
        yield address


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/api/v2/monitor/health", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def _photograph(address: str, path: str) -> None:
    with browser() as started:
        page = started.new_page(viewport={"width": 1280, "height": 900})
        log_in(page, address, USER, json.loads(_PASSWORDS.read_text())[USER])
        page.goto(address + path)
        page.get_by_role("heading", name="Statement", exact=True).wait_for()
        page.wait_for_load_state("networkidle")
        page.screenshot(path=PICTURE, full_page=True)


if __name__ == "__main__":
    serve()
