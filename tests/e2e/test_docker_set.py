"""The set of ``docker/compose.yaml`` without containers: its commands, on loopback.

Docker runs on few build machines. What it would start is started here, with this machine's ports
and folders, and DAGs are run as their users run them, over the REST API.
"""

from __future__ import annotations

import json
import os
import re
import urllib.request
from pathlib import Path
from signal import SIGKILL

import pytest
from upath import UPath

from airflow_hive_opt.documents.descriptor import decode
from tests.services.airflow import wait_for
from tests.services.processes import HOST

TASK = "sales_by_category"
NOVEMBER = {"year": 2000, "month": 11}


def test_the_example_dag_runs_on_the_cluster_and_its_links_work(airflow, cluster_sales, plain):
    summary = airflow.summary("cluster_sales", cluster_sales, TASK)
    assert (summary["kept"], summary["total"], summary["reason"]) == (30, 366, "PRUNED")
    expected = plain.example("sales_by_category.sql", params=NOVEMBER)
    assert plain.table("sales_by_category") == expected
    assert len(expected) == 6
    links = airflow.task("cluster_sales", cluster_sales, TASK, "/links")["extra_links"]
    assert links["Spark UI"].endswith(f"/app/?appId={summary['application_id']}")
    explained = airflow.ask(links["Explain pruning"])
    assert explained.startswith("kept 30 of 366 partitions (91.8 % pruned)")
    assert airflow.ask(links["Partition descriptor"])["sha256"] == summary["digest"]


def test_a_cleared_task_runs_again_and_gives_the_same_rows(airflow, cluster_sales, plain):
    """On the cluster, where Airflow keeps the finished application's id to resume it by."""
    before = airflow.summary("cluster_sales", cluster_sales, TASK)
    plain.session.sql("INSERT OVERWRITE TABLE sales_by_category VALUES ('gone', 'XX', 0, 0, 0)")
    airflow.ask(
        "/api/v2/dags/cluster_sales/clearTaskInstances",
        {"dag_run_id": cluster_sales, "dry_run": False, "only_failed": False},
    )
    assert airflow.ended("cluster_sales", cluster_sales) == "success"
    after = airflow.summary("cluster_sales", cluster_sales, TASK)
    assert airflow.task("cluster_sales", cluster_sales, TASK)["try_number"] == 2
    assert after["application_id"] != before["application_id"]
    paths = [UPath(each["uri"]) for each in (before, after)]
    assert [path.name for path in paths] == ["1.json", "2.json"]
    first, second = (decode(path.read_bytes()) for path in paths)
    assert first.targets == second.targets
    expected = plain.example("sales_by_category.sql", params=NOVEMBER)
    assert plain.table("sales_by_category") == expected


@pytest.mark.parametrize("region", ["SD", "it's"])
def test_the_parameters_of_a_trigger_choose_the_rows(airflow, plain, region):
    asked = {"region": region, "year": 2000, "month": 3}
    run_id = airflow.trigger("region_sales", **asked)
    assert airflow.ended("region_sales", run_id) == "success"
    summary = airflow.summary("region_sales", run_id, "sales_of_the_region")
    assert (summary["kept"], summary["total"]) == (31, 366)
    quoted = region.replace("'", "\\'")
    month = plain.rows(
        "SELECT i_category, s_state, count(*), sum(ss_quantity), sum(ss_ext_sales_price) "
        "FROM store_sales, date_dim, item, store WHERE ss_sold_date_sk = d_date_sk AND "
        "ss_item_sk = i_item_sk AND ss_store_sk = s_store_sk AND d_year = 2000 AND d_moy = 3 "
        f"AND s_state = '{quoted}' GROUP BY i_category, s_state"
    )
    assert plain.table("sales_by_category") == month
    assert len(month) == (3 if region == "SD" else 0)


def test_a_killed_attempt_is_retried(airflow, cluster, plain):
    plain.session.sql("CREATE TABLE slow_result (d_moy INT, n BIGINT) STORED AS PARQUET")
    rows = 100_000  # the first attempt takes 500 times as many: minutes, were it not killed
    run_id = airflow.trigger("slow_sales", rows=rows)

    def mid_join():
        """The application's id, once the join has tasks that run."""
        log = "".join(map(Path.read_text, airflow.logs.glob("dag_id=slow_sales/**/attempt=1.log")))
        if "Spark looks up the partitions of ss" not in log:  # told just before the join
            return None
        (port,) = re.findall(r"service 'SparkUI' on port (\d+)", log)
        applications = f"http://{HOST}:{port}/api/v1/applications"
        (application,) = read(applications)
        stages = read(f"{applications}/{application['id']}/stages?status=active")
        return application["id"] if sum(stage["numActiveTasks"] for stage in stages) else None

    killed = wait_for(mid_join)
    os.kill(airflow.task("slow_sales", run_id, "join")["pid"], SIGKILL)
    assert airflow.ended("slow_sales", run_id) == "success"
    assert airflow.task("slow_sales", run_id, "join")["try_number"] == 2
    assert plain.table("slow_result") == plain.rows(
        f"SELECT d_moy, count(*) FROM store_sales, date_dim, range({rows}) WHERE d_moy = 2 "
        "AND ss_sold_date_sk = d_date_sk AND hash(ss_item_sk, id) % 1000 = 7 GROUP BY d_moy"
    )
    # the first attempt's application has gone with it, and left no outcome
    assert wait_for(lambda: not ours(cluster, "activeapps") or None)
    summary = airflow.summary("slow_sales", run_id, "join")
    assert ours(cluster, "completedapps") == {killed, summary["application_id"]}
    written = {path.name for path in UPath(summary["uri"]).parent.iterdir()}
    assert {"1.json", "2.json", "2.outcome.json"} <= written
    assert "1.outcome.json" not in written
    assert list(drivers()) == []


def read(address):
    with urllib.request.urlopen(address, timeout=10) as answer:
        return json.load(answer)


def ours(cluster, which):
    return {app["id"] for app in cluster.state()[which] if "slow_sales.join" in app["name"]}


def drivers():
    """The process ids of spark-submits for the killed task."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"slow_sales.join" in path.read_bytes():
                yield int(path.parent.name)
        except OSError:  # it has just ended
            continue
