"""Parts of the benchmarks: tables that bypass the metastore, and reports of the results."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest

from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.metastores.thrift.metastore import ThriftMetastore
from airflow_hive_opt.statement.scan_ref import ScanRef
from benchmarks import correlation_report, key_predicate, key_sets, overhead, planning
from benchmarks.engines_report import write_engines
from benchmarks.report import spread, write_growth
from benchmarks.s3 import write_s3
from benchmarks.suites import SUITES, TPCDS, TPCH, query_texts
from benchmarks.tpc import text_of
from benchmarks.tpc_report import write_suite
from benchmarks.warehouse import register
from benchmarks.worker import compared
from benchmarks.worker_report import write_worker
from tests.services.thrift import add_partitions, create_database, create_table, thrift_client

COLUMNS = [("id", "bigint")]
COST = {
    "seconds": 2.0,
    "cpu_seconds": 3.0,
    "metastore_calls": 3,
    "partitions_fetched": 10,
    "files_listed": 10,
    "directories_listed": 10,
    "bytes_read": 1000,
    "peak_heap": 10**8,
}
MACHINE = {"cores": 2, "system": "s", "python": "3.11", "pyspark": "4.3", "package": "0.1"}


def test_partitions_registered_in_the_database_equal_added_ones(
    metastore_service, postgres_server, tmp_path
):
    values = [f"d{number:02}" for number in range(30)]
    statistics = {"numFiles": "1", "numRows": "10", "totalSize": "77"}
    folder = Path(f"file:{tmp_path}")
    with thrift_client(metastore_service) as client:
        create_database(client, "grown", str(tmp_path))
        for name in ("added", "registered"):
            create_table(client, f"grown.{name}", COLUMNS, [("ds", "string")], f"{folder}/t")
        parts = [([value], f"{folder}/t/ds={value}", statistics) for value in values]
        add_partitions(client, "grown.added", COLUMNS, parts)
        register(postgres_server, "grown.registered", "ds", f"{folder}/t", values, 77)
        # and the metastore goes on counting where the registering stopped
        add_partitions(client, "grown.registered", COLUMNS, [(["last"], f"{folder}/x", {})])
    with ThriftMetastore(metastore_service.uri, "grown") as metastore:
        found = {}
        for name in ("added", "registered"):
            table = metastore.table(name)
            keys = [((0,), frozenset((value,) for value in values[3:9]))]
            by_filter = metastore._by_filter(table, keys)
            by_names = metastore.partitions_by_names(table, metastore.partition_names(table))
            found[name] = (set(by_filter), {part for part in by_names if part.values != ("last",)})
        assert found["added"] == found["registered"]
        assert [len(parts) for parts in found["added"]] == [6, 30]
        assert metastore.partition_count(metastore.table("registered")) == 31


@pytest.mark.parametrize(("suite", "queries"), [(TPCDS, 99), (TPCH, 22)])
def test_each_suite_has_all_queries_of_its_standard(suite, queries):
    texts = query_texts(suite)
    assert sorted(texts) == list(range(1, queries + 1))
    assert not any(text.endswith(";") or ' as "' in text.lower() for text in texts.values())
    assert SUITES[suite.name] is suite
    facts = [any(table in text for table in suite.partitioned) for text in texts.values()]
    assert sum(facts) > 0.8 * queries


def test_rows_are_compared_without_order_and_last_digits():
    assert text_of([(1, 0.1 + 0.2), (None, "x")]) == text_of([(None, "x"), (1, 0.3)])
    assert text_of([(1, 0.3)]) != text_of([(1, 0.3), (1, 0.3)])
    assert text_of([("1",)]) != text_of([(1,)])


def test_spread_prints_median_range_and_count():
    assert spread([1.0, 1.5, 1.2]) == "1.20 (1.00-1.50, 3)"


def run(contender, seconds, **more):
    return {"contender": contender, "cost": {**COST, "seconds": seconds}, "noise": 1.0, **more}


def test_the_growth_report_has_the_ratio_to_the_floor(tmp_path):
    setting = {"partitions": 1000, "matching": 10, "latency": 5}
    runs = [
        run(name, seconds, setting=setting, start="warm", session=0.0)
        for name, seconds in (("ours", 3.0), ("ours", 5.0), ("literal list", 2.0))
    ]
    write_growth(runs, MACHINE, tmp_path)
    (line,) = [
        line for line in (tmp_path / "growth.md").read_text().splitlines() if "| ours |" in line
    ]
    assert "4.00 (3.00-5.00, 2) | 2.00 | 3 | 10 |" in line
    assert (tmp_path / "growth.png").stat().st_size > 0


def test_requests_of_s3_are_told_by_kind(tmp_path):
    setting = {"partitions": 100, "matching": 3, "latency": 5}
    runs = [
        run(name, seconds, setting=setting, start="warm", requests=requests, load=1.5)
        for name, seconds, requests in (
            ("Spark, every switch on", 8.0, {"LIST": 1_100, "GET": 6}),
            ("ours", 2.0, {"LIST": 4, "GET": 7}),
        )
    ]
    write_s3(runs, MACHINE, tmp_path)
    (line,) = [line for line in (tmp_path / "s3.md").read_text().splitlines() if "| ours |" in line]
    assert "2.00 (2.00-2.00, 1) | 4.0 | 11 | 7 | 4 | 10 |" in line


def test_the_report_of_engines_compares_their_own_join_with_the_restricted_one(tmp_path):
    beside = {"noise": 4.0, "load": 1.0, "differs": False}
    timed = {"seconds": 2.0, "cpu_seconds": 1.0}
    measured = [
        {"name": "DuckDB", "way": "own", "number": 0, "files": 3_000, **beside},
        {"name": "DuckDB", "way": "restricted", "number": 0, "files": 5, **beside},
        {"name": "DuckDB", "way": "own", "number": 1, **timed, **beside},
        {"name": "DuckDB", "way": "restricted", "number": 1, **timed, "seconds": 0.5, **beside},
        {"name": "DuckDB", "way": "", "number": 1, "differs": True, "own": 1, "restricted": 2},
    ]
    document = {
        "machine": {**MACHINE, "duckdb": "1.5"},
        "partitions": 3_000,
        "matching": 5,
        "rows": 200,
        "local_task": 1.0,
        "measured": measured,
    }
    write_engines(document, tmp_path)
    text = (tmp_path / "engines.md").read_text()
    assert "| DuckDB | 3,000 | 5 | 2.00 (2.00-2.00, 1) | 0.50 (0.50-0.50, 1) | 4.0 |" in text
    assert "cases whose rows differ: 1\n" in text


@pytest.mark.parametrize(("differing", "word"), [([], "yes"), ([3], "NO")])
def test_the_report_of_a_suite_has_rows_seconds_and_scans(tmp_path, differing, word):
    def of(query, contender, seconds, **more):
        told = {"start": "warm", "scans": {}, "kept": {}, "whole": {}}
        return run(contender, seconds, query=query, **{**told, **more})

    facts = {"a": 100, "b": 50, "c": 10}
    runs = [
        of(3, "Spark, every switch on", 8.0, scans={"a": [30, 99], "b": [49], "c": [10]}),
        of(3, "ours", 2.0, scans={"a": [30, 30], "b": [20]}, kept={"a": [30], "b": [20]}),
        of(4, "Spark, every switch on", 1.0, scans={"a": [30]}),
        of(4, "ours", 2.0, scans={"a": [100]}, whole={"a": ["PRESERVED_SIDE"]}),
    ]
    document = {
        "machine": MACHINE,
        "scale": 1,
        "totals": facts,
        "differing": differing,
        "runs": runs,
    }
    write_suite("TPC", document, tmp_path / "tpc.json")
    text = (tmp_path / "tpc.md").read_text()
    assert f"| q03 | {word} |" in text
    assert "Spark, every switch on / ours 1.41" in text
    assert "Over the 1 of them with a list: Spark, every switch on / ours 4.00" in text
    assert (
        "4 pairs of a query and a fact table, 1 are pruned by both, 2 here alone, 1 by Spark"
        in text
    )
    assert "| q03 | a | 60 [30] | 129 | 200 |  |" in text
    assert "| q04 | a | 100 | 30 | 100 | PRESERVED_SIDE |" in text
    assert (tmp_path / "tpc.png").stat().st_size > 0


def test_the_report_of_key_predicates_has_the_measured_seconds(tmp_path):
    seconds = {key_predicate.SPARK: 3.0, key_predicate.OURS: 1.5, key_predicate.FLOOR: 1.0}
    runs = [
        {"table": table, "pick": pick, "contender": name, "seconds": value, "noise": 5.0}
        | ({"used": "list"} if name == key_predicate.OURS else {})
        for table in key_predicate.TABLES
        for pick in key_predicate.PICKS
        for name, value in seconds.items()
    ]
    key_predicate.write(runs, MACHINE, 1000, tmp_path)
    text = (tmp_path / "key_predicate.md").read_text()
    assert "| clustered ORC | 20 together | list | 3.00 (3.00-3.00, 1) | 1.50 " in text
    assert "| 2.00 |" in text
    assert (tmp_path / "key_predicate.png").stat().st_size > 1000


def test_the_report_of_overhead_has_seconds(tmp_path):
    runs = [
        {"where": where, "contender": name, "seconds": seconds, "noise": 5.0}
        for where, name, seconds in (
            (overhead.LOCAL, overhead.PLAIN, 1.0),
            (overhead.LOCAL, overhead.OPERATOR, 1.5),
            (overhead.CLUSTER, overhead.BARE, 10.0),
            (overhead.CLUSTER, overhead.OPERATOR, 12.0),
        )
    ]
    runs[-1]["to first job"] = 8.0
    pokes = [
        {"partitions": wanted, "contender": name, "seconds": 0.01, "noise": 5.0, "calls": ["c"]}
        for wanted in (1, 1_000)
        for name in (overhead.SENSOR, overhead.TRIGGER)
    ]
    overhead.write(runs, pokes, MACHINE, tmp_path)
    text = (tmp_path / "overhead.md").read_text()
    assert "standalone cluster: operator / bare spark-submit 1.20, +2.00 s" in text
    assert "| standalone cluster | operator | 12.00 (12.00-12.00, 1) | 8.00" in text
    assert "| 1,000 | trigger's look | 10.00 (10.00-10.00, 1) | 1 |" in text
    assert "PySpark 4.3, airflow-hive-opt 0.1" in text


def test_the_report_of_key_sets_has_seconds_and_queries(tmp_path):
    seconds = {key_sets.ALONE: (6.0, 4.0, 5), key_sets.SHARED: (3.0, 1.0, 1)}
    runs = [
        {"table": table, "form": form, "contender": name, "noise": 5.0}
        | {"seconds": wall, "cpu_seconds": cpu, "queries": queries}
        for table in key_sets.TABLES
        for form in key_sets.FORMS
        for name, (wall, cpu, queries) in seconds.items()
    ]
    key_sets.write(runs, {**MACHINE, "load": [1.0, 2.5]}, tmp_path)
    text = (tmp_path / "key_sets.md").read_text()
    line = "| hours | local tasks | a key set | 1 | 3.00 (3.00-3.00, 1) | 1.00 (1.00-1.00, 1) |"
    assert line in text
    assert "days, whole statements: 2.00 times as fast, 4.00 times by CPU seconds" in text
    assert "load of the machine: 1.0 before, 2.5 after" in text


def test_the_report_of_planning_has_its_growth(tmp_path):
    def run(contender, label, length, seconds, **told):
        case = {"shape": "OR", "label": label, "parts": length // 10, "length": length}
        return {**case, "contender": contender, "seconds": seconds, "noise": 5.0, **told}

    runs = []
    for label, length, seconds in (("10 kB", 10_000, 0.1), ("100 kB", 100_000, 1.0)):
        runs.append(run(planning.PLAIN, label, length, 2.0, failed="Py4JJavaError"))
        told = {"planning": seconds, "reason": "PRUNED"}
        runs.append(run(planning.LOCAL_TASK, label, length, seconds + 1, **told))
    planning.write(runs, MACHINE, tmp_path)
    text = (tmp_path / "planning.md").read_text()
    assert "| OR | 100 kB | 10,000 | 100.0 | 1.00 (1.00-1.00, 1) | 2.00 (2.00-2.00, 1) |" in text
    assert "| 2.00 (2.00-2.00, 1) (fails) | `PRUNED` |" in text
    assert "| OR | 1.00 |" in text
    runs[-1]["reason"] = "PLANNING_TOO_LONG"
    planning.write(runs, MACHINE, tmp_path)
    assert "| OR | passes through |" in (tmp_path / "planning.md").read_text()


def test_of_length_returns_the_most_parts_that_fit_the_length():
    for make, _ in planning.SHAPES.values():
        parts = planning.of_length(make, 10_000)
        assert len(make(parts)) <= 10_000 < len(make(parts + 1))


def test_the_correlation_report_keeps_results_that_were_not_measured_again(tmp_path):
    def run(query, rewritten, adaptive=True):
        work = {"shuffles": 4, "scans": 3, "shuffled_bytes": 2_000_000}
        seconds = {"plain": [2.0, 2.0, 3.0], **({"rewritten": rewritten} if rewritten else {})}
        return {
            "query": query,
            "scale": "0.5",
            "mode": "auto",
            "adaptive": adaptive,
            "broadcast": False,
            "applied": ["self_join_window"] if rewritten else [],
            "seconds": seconds,
            "cpu": seconds,
            "work": dict.fromkeys(seconds, work),
            "same_rows": True,
            "noise": 5.0,
        }

    for found in (run("Q21", [2.0]), run("Q18", []), run("Q21", [1.0, 1.5, 1.2])):
        correlation_report.keep(found, MACHINE, tmp_path)
    text = (tmp_path / "correlation.md").read_text()
    assert "- all: median ratio 0.80, worst 1.00" in text
    assert "- rewritten: median ratio 0.60, worst 0.60" in text
    assert text.count("| Q21 |") == text.count("| Q18 |") == 1
    assert "| Q21 | on | shuffle | self_join_window | 2.00 (2.00-3.00, 3) | 1.20" in text
    assert "| 4 → 4 | 3 → 3 | 2.0 → 2.0 | yes |" in text
    correlation_report.keep(run("Q21", [1.0], adaptive=False), MACHINE, tmp_path)
    assert (tmp_path / "correlation.md").read_text().count("| Q21 |") == 2


def test_the_worker_is_compared_scan_by_scan(tmp_path):
    spark = [_target("f", 5, "a"), _target("f", 30, "a", "b"), _target("g", 60, "a")]
    worker = [_target("f", 5, "a", "c"), _target("f", 30, "a"), _target("f", 90)]
    decision = SimpleNamespace(scan=spark[2].scan, reason="TOO_MANY_KEYS")
    there = SimpleNamespace(targets=spark, decisions=())
    here = SimpleNamespace(targets=worker, decisions=[decision])
    of_f, of_g = compared("tpcds", 1, there, here)
    assert (of_f.kept, of_f.more, of_f.missing, of_f.why) == (3, 1, 1, "")
    assert (of_g.kept, of_g.why) == (1, "TOO_MANY_KEYS")
    left = list(compared("tpch", 2, there, "a | view"))
    assert {pair.why for pair in left} == {"a | view"}
    runs = [
        {**{"by": by, "noise": 1.0, "load": 1.0, "kept": 30, "peak": peak}, **cost}
        for by, peak in (("worker", 2 * 10**8), ("Spark", 10**9))
        for cost in ({"seconds": 3.0, "cpu_seconds": 2.0}, {"seconds": 1.5, "cpu_seconds": 2.5})
    ]
    document = {"machine": MACHINE, "scale": 0.01, "partitions": 20_000, "matching": 30}
    document |= {"pairs": [asdict(p) for p in (of_f, of_g, *left)], "measured": runs}
    write_worker(document, tmp_path)
    text = (tmp_path / "worker.md").read_text()
    assert "| tpcds | 2 | 1 | 50% | 0 | 0 | 1 |" in text
    assert "| all | 4 | 1 | 25% | 0 | 0 | 1 |" in text
    assert "| a \\| view | 2 |" in text
    assert "| worker | 1.50 | 2.00 | 200 | 30 | 2 |" in text


def _target(table, start, *values):
    scan = ScanRef(table, f"default.{table}", (start, start + 1), table)
    partitions = tuple(Partition((value,)) for value in values)
    return SimpleNamespace(scan=scan, partitions=partitions, total=9, kept=len(partitions))


SERVED = """
import sys
from contextlib import contextmanager
import signal
import subprocess
import sys
from pathlib import Path
from benchmarks import demo_pages
from tests.services.processes import server

folder = Path(sys.argv[1])
(folder / "passwords").write_text('{"admin": "secret"}')
demo_pages.HOME, demo_pages._PASSWORDS = folder, folder / "passwords"

@contextmanager
def api_server(port):
    with server(["sleep", "600"], folder / "log", lambda: True) as child:
        print(child.pid, flush=True)
        yield "http://there"

demo_pages._api_server = api_server
demo_pages.serve()
"""


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_the_demos_pages_are_served_without_a_terminal(tmp_path, kind):
    command = [sys.executable, "-c", SERVED, str(tmp_path)]
    ignored = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]  # as of a job in the background
    with subprocess.Popen(
        [*ignored, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as serving:
        child = Path("/proc", serving.stdout.readline().strip())
        assert serving.stdout.readline().startswith("==> http://there/hive_opt/pages/ (user admin")
        serving.send_signal(kind)
        assert serving.wait(timeout=60) == 0
    assert not child.exists()
