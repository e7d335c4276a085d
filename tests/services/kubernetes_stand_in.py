"""A stand-in for Kubernetes' API server on loopback: it keeps objects and runs nothing.

It answers what spark-submit and Airflow's providers ask for: create, apply, read, watch and delete.
It rejects what Kubernetes' schemas, as kubernetes-validate has them, or its rules of names reject.
The schema of SparkApplication is that of the Kubeflow Spark operator. A test says how a pod ends.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonschema
import kubernetes_validate
import yaml

from tests.services.processes import HOST

VERSION = "1.35"
"""The version of Kubernetes whose schemas decide."""

_PATH = re.compile(
    r"/(?:api|apis/[^/]+)/v1[a-z0-9]*/namespaces/([^/]+)/([^/]+)(?:/([^/]+))?(?:/status)?"
)
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_LABEL = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_LONGEST = {"services": 63}
_OTHERS = 253


@dataclass
class KubernetesStandIn:
    """A running stand-in.

    ``objects`` are those that exist, by namespace, kind and name. ``created`` are all pods that
    were created, and ``deleted`` the names of those that were deleted. ``rejected`` says why
    something was not accepted. ``on_pod`` gets a new pod and returns its phase and exit code; with
    ``None`` the pod stays pending.
    """

    port: int = 0
    on_pod: Callable[[dict[str, Any]], tuple[str, int] | None] = lambda pod: ("Succeeded", 0)
    objects: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The API server's URL."""
        return f"http://{HOST}:{self.port}"

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The objects of a kind, such as ``configmaps``."""
        return [found for (_, is_of, _), found in self.objects.items() if is_of == kind]

    def kube_config(self) -> str:
        """The text of a configuration file for clients."""
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": self.url}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )

    def finish(self, pod: dict[str, Any], phase: str, code: int) -> None:
        """Ends a pod, as its kubelet reports it."""
        (container,) = pod["spec"]["containers"]
        at = "2026-01-01T00:00:00Z"
        ended = {"exitCode": code, "reason": "Completed" if not code else "Error"}
        pod["status"] = {
            "phase": phase,
            "startTime": at,
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": "",
                    "ready": False,
                    "restartCount": 0,
                    "state": {"terminated": {**ended, "startedAt": at, "finishedAt": at}},
                }
            ],
        }


@cache
def _of_spark_application() -> jsonschema.Draft202012Validator:
    """The schema of SparkApplication; a field that it does not have is an error."""

    def close(schema: Any) -> Any:
        if isinstance(schema, list):
            return [close(each) for each in schema]
        if not isinstance(schema, dict):
            return schema
        closed = {name: close(value) for name, value in schema.items()}
        has_fields = closed.get("type") == "object" and "properties" in closed
        return {**closed, "additionalProperties": False} if has_fields else closed

    file = Path(__file__).with_name("spark_application.json.gz")
    schema = close(json.loads(gzip.decompress(file.read_bytes())))
    schema["properties"]["metadata"] = {"type": "object"}
    # Airflow's provider adds them, and an API server drops fields of an application without schema.
    schema["properties"]["spec"]["properties"]["labels"] = {"type": "object"}
    return jsonschema.Draft202012Validator(schema)


def violation(kind: str, resource: dict[str, Any]) -> str | None:
    """Why an API server would reject the object; ``None`` if it would not."""
    try:
        if kind == "sparkapplications":
            _of_spark_application().validate(resource)
        else:
            kubernetes_validate.validate(resource, VERSION, strict=True)
    except jsonschema.ValidationError as error:
        return f"{'.'.join(map(str, error.path))}: {error.message}"
    metadata = resource["metadata"]
    name = metadata["name"]
    if len(name) > _LONGEST.get(kind, _OTHERS) or not _SUBDOMAIN.fullmatch(name):
        return f"metadata.name: {name!r} is no DNS name of {kind}"
    for label, value in metadata.get("labels", {}).items():
        if len(value) > 63 or not _LABEL.fullmatch(value):
            return f"metadata.labels.{label}: {value!r} is no label's value"
    return None


@contextmanager
def kubernetes_stand_in() -> Iterator[KubernetesStandIn]:
    """A stand-in until the block ends."""
    stand_in = KubernetesStandIn()
    served = ThreadingHTTPServer((HOST, 0), _handler(stand_in))
    served.daemon_threads = True
    stand_in.port = served.server_port
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    try:
        yield stand_in
    finally:
        served.shutdown()
        served.server_close()
        thread.join()


def _handler(stand_in: KubernetesStandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            namespace, kind, name = self._target()
            query = parse_qs(urlsplit(self.path).query)
            if query.get("watch") == ["true"]:
                if "websocket" in self.headers.get("Upgrade", "").lower():
                    self._answer(200, {})  # a client then watches by plain HTTP
                    return
                self._watch(namespace, kind, query["fieldSelector"][0].partition("=")[2])
                return
            found = stand_in.objects.get((namespace, kind, name))
            if not name and kind == "pods":  # the labels asked for are those of no pod
                self._answer(200, {"kind": "PodList", "apiVersion": "v1", "items": []})
            elif found is None:
                self._refuse(404, "NotFound", f"no {kind} {name}")
            else:
                self._answer(200, found)

        def do_POST(self) -> None:
            namespace, kind, _ = self._target()
            resource = self._body()
            if self._accept(namespace, kind, resource):
                if kind == "pods":
                    stand_in.created.append(resource)
                    if (end := stand_in.on_pod(resource)) is not None:
                        stand_in.finish(resource, *end)
                self._answer(201, resource)

        def do_PATCH(self) -> None:
            namespace, kind, _ = self._target()
            resource = self._body()
            if self._accept(namespace, kind, resource):
                self._answer(200, resource)

        def do_DELETE(self) -> None:
            self._body()
            target = self._target()
            if (found := stand_in.objects.pop(target, None)) is None:
                self._refuse(404, "NotFound", f"no {target[1]} {target[2]}")
                return
            stand_in.deleted.append(target[2])
            self._answer(200, found)

        def _accept(self, namespace: str, kind: str, resource: dict[str, Any]) -> bool:
            if (why := violation(kind, resource)) is not None:
                self._refuse(422, "Invalid", why)
                return False
            metadata = resource["metadata"]
            key = (namespace, kind, metadata["name"])
            metadata.update(namespace=namespace, uid=f"uid-of-{metadata['name']}")
            metadata["resourceVersion"] = str(len(stand_in.requests))
            if kind == "pods":
                resource.setdefault("status", {"phase": "Pending"})
            if kind == "sparkapplications":
                resource["status"] = {"applicationState": {"state": "RUNNING"}}
            stand_in.objects[key] = resource
            return True

        def _watch(self, namespace: str, kind: str, name: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            while (found := stand_in.objects.get((namespace, kind, name))) is not None:
                if found["status"]["phase"] in ("Succeeded", "Failed"):
                    event = {"type": "MODIFIED", "object": found}
                    self.wfile.write(json.dumps(event).encode() + b"\n")
                    return
                time.sleep(0.05)

        def _target(self) -> tuple[str, str, str]:
            path = urlsplit(self.path).path
            stand_in.requests.append(f"{self.command} {self.path}")
            found = _PATH.fullmatch(path)
            return (found[1], found[2], found[3] or "") if found else ("", path, "")

        def _body(self) -> dict[str, Any]:
            length = int(self.headers.get("Content-Length") or 0)
            found: dict[str, Any] = yaml.safe_load(self.rfile.read(length)) or {}
            return found

        def _refuse(self, code: int, reason: str, message: str) -> None:
            if code != 404:
                stand_in.rejected.append(message)
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
            self._answer(code, {**status, "reason": reason, "message": message, "code": code})

        def _answer(self, code: int, body: dict[str, Any]) -> None:
            text = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *arguments: object) -> None:
            """Says nothing; ``requests`` has them."""

    return Handler
