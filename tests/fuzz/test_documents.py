"""Documents with random changes: each is read, or rejected with ``DescriptorError``.

``FUZZ_DOCUMENTS=20000 FUZZ_SEED=7`` tests more of them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import resource
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from random import Random
from typing import Any

import pytest
from upath import UPath

from airflow_hive_opt.documents import descriptor as descriptors
from airflow_hive_opt.documents import required
from airflow_hive_opt.documents.descriptor import RowFilter
from airflow_hive_opt.documents.descriptor_text import descriptor_to_text
from airflow_hive_opt.documents.format import MOST_BYTES
from airflow_hive_opt.documents.gates import Gates
from airflow_hive_opt.documents.index_trial import IndexTrial, TrialArm
from airflow_hive_opt.documents.job import (
    Job,
    Outcome,
    Stages,
    Status,
    outcome_path,
    read_job,
    read_outcome,
    write_job,
    write_outcome,
)
from airflow_hive_opt.documents.report import (
    Report,
    descriptor_summary,
    keep_report,
    read_report,
    report_path,
)
from airflow_hive_opt.documents.required import RequiredPartitions
from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.metastores.required import Required
from airflow_hive_opt.metastores.work import Work
from tests.documents.test_descriptor import descriptor
from tests.fuzz.findings import SEED, case, count_of, repeat

DOCUMENTS = count_of("FUZZ_DOCUMENTS", 600)
MOST_GROWTH = 8 * MOST_BYTES
"""Of this process, in bytes; one document that is read without bounds takes more."""

TABLE = Required("db.t", ("ds", "n"), ("date", "int"), ("n", "ds"), ((7, date(2026, 1, 1)),))


def read_descriptor(path: UPath) -> None:
    """And shows it, as the API server does."""
    found = descriptors.load(path)
    descriptors.to_json(found)
    descriptor_to_text(found)
    descriptor_summary(found, "/uri")


def documents(folder: UPath) -> dict[str, tuple[UPath, Callable[[UPath], object]]]:
    """A written document of each kind, and what reads it."""
    path = folder / "1.json"
    (target,) = descriptor().targets
    rows = RowFilter(
        *(target.scan, "sales", True, "day", "date"),
        ("2026-01-01", "2026-01-31"),
        True,
        target.sources[0],
    )
    whole = replace(descriptor(), row_filters=(rows,), statement="SELECT 2")
    descriptors.write(whole, folder / "d.json")
    required.write(RequiredPartitions("q", ("ds",), "t", (TABLE,)), folder / "r.json")
    job = Job(
        *("SELECT 1", "/1.json", Stages.KEYS, {"a": [1, {"b": None}]}, {"hive.map.aggr": True}),
        gates=Gates(max_bytes=3),
        index_trial=IndexTrial("6f1a", 1.5, skipped_keys={"a": 1}, tries=TrialArm.LEFT_OUT),
        columns=("ds",),
        token="t",
    )
    assert read_job(write_job(job, path)) == job
    report = Report(whole, "/1.json", {"map join": 1.5}, {"map join": Work(1, 2, 3)})
    keep_report(report, path)
    outcome = Outcome(Status.DONE, "done", report.summary(), ("n",), (("1",),), "SELECT 1", "t")
    write_outcome(outcome, path)
    return {
        "descriptor": (folder / "d.json", read_descriptor),
        "required": (folder / "r.json", lambda at: required.read(at, "q", ("ds",), "t")),
        "job": (folder / "1.job.json", read_job),
        "outcome": (outcome_path(path), lambda _: read_outcome(path, "t")),
        "report": (report_path(path), read_report),
    }


def by_bytes(random: Random, data: bytes) -> bytes:
    """One to four bytes or stretches otherwise."""
    for _ in range(random.randint(1, 4)):
        start, stop = sorted(random.randrange(len(data) + 1) for _ in range(2))
        match random.randrange(5):
            case 0 if data:
                at = random.randrange(len(data))
                data = data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]
            case 1:
                data = data[:start]
            case 2:
                data = data[:start] + data[stop:]
            case 3:
                data = data[:start] + random.randbytes(random.randint(1, 20)) + data[start:]
            case _:
                data = data[:start] + data[stop:] + data[start:stop]
    return data


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container within a value, with each of its keys or positions."""
    found = []
    left = [value]
    while left:
        container = left.pop()
        keys = list(container) if isinstance(container, dict) else range(len(container))
        for key in keys:
            found.append((container, key))
            if isinstance(container[key], dict | list):
                left.append(container[key])
    return found


def nested(depth: int) -> Any:
    found: Any = 1
    for _ in range(depth):
        found = [found] if depth % 2 else {"x": found}
    return found


def odd_value(random: Random) -> Any:
    """A value of any type, some of them hard to hold."""
    return random.choice(
        (
            *(None, True, False, 0, -1, 7, 2**63, 2**63 - 1, -(10**400), 10**4299),
            *(0.5, -0.0, 1e308, float("nan"), float("inf"), float("-inf")),
            *(
                "",
                "x",
                "7",
                "\ud800",
                "\udfff\ud800",
                "\x00",
                "x" * 70_000,
                "1" * 5000,
                "é\U0001f600",
            ),
            *([], {}, [[]], [None], {"": None}, {"\ud800": 1}, [1, "x", None]),
            *(nested(random.choice((2, 50, 400, 900))), ["x"] * random.randint(1, 50)),
        )
    )


def by_structure(random: Random, document: Any) -> Any:
    """One to three places of the JSON otherwise."""
    for _ in range(random.randint(1, 3)):
        found = places(document)
        if not found:
            return odd_value(random)
        container, key = random.choice(found)
        match random.randrange(6):
            case 0:
                del container[key]
            case 1 if isinstance(container, list):
                container.insert(key, container[key])
            case 1:
                container[f"{key}x"] = container[key]
            case 2:
                container[key] = [container[key]]
            case 3 if isinstance(container[key], str | int | float | None):
                container[key] = str(container[key])
            case 4:
                other, place = random.choice(found)
                try:
                    container[key] = json.loads(json.dumps(other[place]))
                except LookupError:  # it went with what was deleted
                    container[key] = None
            case _:
                container[key] = odd_value(random)
    return document


def sealed(document: Any) -> Any:
    """The document with a seal that fits, where it is an object."""
    if isinstance(document, dict):
        document.pop("sha256", None)
        text = json.dumps(document, separators=(",", ":"))
        document["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return document


@contextmanager
def deep() -> Iterator[None]:
    """Lets this module write what others can't read."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(10 * usual)
    try:
        yield
    finally:
        sys.setrecursionlimit(usual)


def mutated(random: Random, data: bytes, way: str) -> bytes:
    """A document otherwise; plain or gzip."""
    if way != "bytes":
        with deep():
            document = by_structure(random, json.loads(data))
            data = json.dumps(sealed(document) if way == "sealed" else document).encode()
    if random.random() < 0.5:
        data = gzip.compress(data, 1, mtime=0)
    return by_bytes(random, data) if way == "bytes" else data


@pytest.mark.parametrize("kind", ["descriptor", "required", "job", "outcome", "report"])
def test_a_randomly_changed_document_is_read_or_refused(tmp_path, kind):
    random = Random(f"{SEED} {kind}")
    path, read = documents(UPath(tmp_path))[kind]
    valid = path.read_bytes()
    read(path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told: Counter[tuple[str, str]] = Counter()
    for number in range(DOCUMENTS // 5):
        way = ("bytes", "structure", "sealed", "sealed")[number % 4]
        data = mutated(random, valid, way)
        path.write_bytes(data)
        # the seed and the number make the whole document again
        with case(f"{kind} {number}, {way}", size=len(data), start=data[:2000]):
            try:
                read(path)
                told[way, "read"] += 1
            except DescriptorError as error:
                str(error).encode()  # a log must be able to hold it
                told[way, "refused"] += 1
    growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    counted = f"{kind}, {repeat(FUZZ_DOCUMENTS=DOCUMENTS)}: {dict(sorted(told.items()))}"
    counted = f"{counted}, {growth:,} bytes more"
    print(counted)
    assert growth < MOST_GROWTH, counted
    assert told["bytes", "refused"] > told["bytes", "read"], counted
    assert told["structure", "refused"] > told["structure", "read"], counted
    assert told["sealed", "refused"] > 0, counted
    assert told["sealed", "read"] > 0, counted
