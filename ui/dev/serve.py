"""Serves the built pages with sample data on a port of loopback, by default 8910.

The addresses and the content security policy are those of the API server. ``/embedding`` is a page
that embeds ``?page=`` in a sandboxed frame, as Airflow does.
"""

from __future__ import annotations

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

UI = Path(__file__).parents[1]
sys.path.insert(0, str(UI.parent))

from airflow_hive_opt.pages.absent import why_nothing  # noqa: E402
from airflow_hive_opt.pruning.advice import advice_on  # noqa: E402
from airflow_hive_opt.pruning.reasons import Reason  # noqa: E402

STATIC = UI.parent / "airflow_hive_opt" / "pages" / "static"
BASE = "/base/hive_opt"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
SHELL = f"""<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Partition pruning</title>
<link rel="stylesheet" href="{BASE}/static/pages.css">
<script type="module" src="{BASE}/static/pages.js"></script></head>
<body><div id="root" data-base="{BASE}"></div></body></html>"""
EMBEDDING = """<!doctype html><html lang="en" class="{mode}"><title>Airflow</title>
<body style="margin:0"><iframe title="page" src="{page}"
 sandbox="allow-scripts allow-same-origin allow-forms"
 style="border:0;width:100vw;height:100vh"></iframe></body></html>"""


def sample(name: str) -> dict:
    """The content of a file in ``sample``."""
    return json.loads((UI / "sample" / f"{name}.json").read_text())


def partitions(first: bool) -> list[dict]:
    """Partitions of the first or the second scan; the first is the NULL partition."""
    found = []
    for day in range(366):
        values = [None if day == 0 else f"2024-{day // 31 + 1:02}-{day % 31 + 1:02}"]
        if first:
            values.append(("EU", "NA", "<b>APAC</b>", "São Paulo")[day % 4])
        name = "/".join(
            f"{column}={value or '__HIVE_DEFAULT_PARTITION__'}"
            for column, value in zip(("ds", "region"), values, strict=False)
        )
        found.append(
            {
                "values": values,
                "name": name,
                "location": f"s3://warehouse/tpcds.db/store_sales/{name}",
                "rows": None if day % 7 == 0 else 28_000 + day,
                "bytes": None if day % 7 == 0 else 3_400_000 + day * 997,
            }
        )
    return found


def partition_page(query: dict[str, str]) -> dict:
    """The answer to a request for partitions."""
    pruned = [scan for scan in sample("instance")["scans"] if scan["reason"] == "PRUNED"]
    (scan,) = [each for each in pruned if str(each["reference"][0]) == query["scan"]]
    first, offset = scan == pruned[0], int(query.get("offset", 0))
    listed = partitions(first)
    search = query.get("search", "").lower()
    found = [each for each in listed if search in each["name"].lower()]
    return {
        **{name: scan[name] for name in ("scan", "table", "reference")},
        "columns": ["ds", "region"] if first else ["ds"],
        "found": len(found),
        "total": len(listed),
        "partitions": found[offset : offset + int(query.get("limit", 100))],
    }


def history(query: dict[str, str]) -> dict:
    """The answer to a request for runs: 100 of them, from the newest or ``before`` a time."""
    answer = sample("history")
    runs = [
        run for run in answer["runs"] if "before" not in query or run["run_after"] < query["before"]
    ]
    return {**answer, "runs": runs[:100], "more": len(runs) > 100}


def answer(path: str, query: dict[str, str]) -> tuple[int, object]:
    """The API's answer; some DAGs stand for errors."""
    for status, dag_id in ((401, "unknown"), (403, "forbidden")):
        if dag_id in (query.get("dag_id"), *path.split("/")):
            return status, {"detail": "Not authenticated" if status == 401 else "Forbidden"}
    if path == "tasks":
        overview = sample("overview")
        dag_id = query.get("dag_id")
        if dag_id is not None:
            overview["tasks"] = [task for task in overview["tasks"] if task["dag_id"] == dag_id]
        return 200, overview
    if re.fullmatch(r"dags/[^/]+/tasks/[^/]+", path):
        return 200, history(query)
    if re.search(r"/partitions(\.\w+)?$", path):
        return 200, partition_page({**query, "limit": query.get("limit", "1000")})
    if path == "reasons":
        return 200, [
            {"code": reason, "sentence": reason.sentence, "advice": advice_on(reason)}
            for reason in Reason
        ]
    if path.endswith("/tasks/a_sensor"):
        return 200, {"note": why_nothing("RequiredPartitionsSensor", "success")}
    for name in ("instance", "simple", "whole", "stopped"):
        data = sample(name)
        if path == f"dags/{data['dag_id']}/runs/{data['run_id']}/tasks/{data['task_id']}":
            return 200, data
    return 404, {"detail": "not found: the run b of the DAG a has no task c"}


class Handler(BaseHTTPRequestHandler):
    """The shell, its files and the API."""

    def do_GET(self) -> None:
        """Answers one request."""
        address = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        path = unquote(address.path)
        if path.startswith(f"{BASE}/api/"):
            status, body = answer(path.removeprefix(f"{BASE}/api/"), query)
            self.reply(status, json.dumps(body), "application/json")
        elif path in (f"{BASE}/static/pages.js", f"{BASE}/static/pages.css"):
            kind = "text/javascript" if path.endswith(".js") else "text/css"
            self.reply(200, (STATIC / Path(path).name).read_text(), kind)
        elif path.startswith(f"{BASE}/dags"):
            message = sample("whole")["descriptor_note"]
            page = SHELL.replace(f'"{BASE}">', f'"{BASE}" data-message="{message}">')
            self.reply(404, page, "text/html", POLICY)
        elif path.startswith(f"{BASE}/pages"):
            self.reply(200, SHELL, "text/html", POLICY)
        elif path == "/embedding":
            page = EMBEDDING.format(mode=query.get("mode", "light"), page=query["page"])
            self.reply(200, page, "text/html")
        else:
            self.reply(404, "not found", "text/plain")

    def reply(self, status: int, body: str, kind: str, policy: str | None = None) -> None:
        """Sends an answer; only the shell has a policy."""
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Content-Type-Options", "nosniff")
        if policy is not None:
            self.send_header("Content-Security-Policy", policy)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


def server(port: int = 0) -> ThreadingHTTPServer:
    """A server that does not serve yet; port 0 is any free one."""
    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    started = server(int(sys.argv[1]) if len(sys.argv) > 1 else 8910)
    print(f"http://127.0.0.1:{started.server_port}{BASE}/pages/")
    started.serve_forever()
