"""The example DAGs: they import, and ``dag.test()`` runs them on a small warehouse."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import quote

import pytest

from airflow_hive_opt.documents.descriptor import decode, encode
from airflow_hive_opt.provider.spark_provider import SparkSubmitOperator
from tests.services.processes import HOST
from tests.spark.shared_keys import aged, counted
from tests.versions.installed import needs_airflow

DAGS = Path(__file__).parents[2] / "dags"
pytestmark = needs_airflow("3.0")  # the examples import airflow.sdk


def make_star(spark):
    """The tables of the example in small: 60 days, two months."""
    spark.sql("USE default")
    day = "date_add(DATE'2000-10-01', CAST(id AS INT))"
    spark.sql(
        f"CREATE TABLE date_dim STORED AS PARQUET AS SELECT CAST(id AS INT) d_date_sk, "
        f"{day} d_date, year({day}) d_year, month({day}) d_moy FROM range(61)"
    )
    spark.sql(
        "CREATE TABLE item STORED AS PARQUET AS "
        "SELECT CAST(id AS INT) i_item_sk, concat('c', id % 2) i_category FROM range(4)"
    )
    spark.sql("CREATE TABLE store STORED AS PARQUET AS SELECT 1 s_store_sk, 'TN' s_state")
    spark.range(610).selectExpr(
        "CAST(id % 4 AS INT) ss_item_sk",
        "1 ss_store_sk",
        "1 ss_quantity",
        "CAST(2.5 AS DECIMAL(7,2)) ss_ext_sales_price",
        "CAST(id % 61 AS INT) ss_sold_date_sk",
    ).coalesce(1).write.partitionBy("ss_sold_date_sk").saveAsTable("store_sales")
    spark.sql(
        "CREATE TABLE sales_by_category (i_category STRING, s_state STRING, sales BIGINT, "
        "quantity BIGINT, revenue DECIMAL(17,2)) STORED AS PARQUET"
    )
    spark.sql(
        "CREATE TABLE sales_by_day (sales BIGINT, revenue DECIMAL(17,2)) "
        "PARTITIONED BY (day STRING) STORED AS PARQUET"
    )


def drop_star(spark):
    made = ("sales_by_category", "sales_by_day")
    for table in ("date_dim", "item", "store", "store_sales", *made):
        spark.sql(f"DROP TABLE IF EXISTS {table}")


@pytest.fixture(scope="module")
def star(spark):
    make_star(spark)
    yield
    drop_star(spark)


@pytest.fixture
def start(database, tmp_path, monkeypatch):
    """Runs an example as ``dag.test()`` does and gives its run; the example's file names it."""
    monkeypatch.setenv("AIRFLOW__HIVE_OPT__DESCRIPTOR_PATH", str(tmp_path))

    def start(name, folder=DAGS, **options):
        from airflow.models.dagbundle import DagBundleModel
        from airflow.utils.session import create_session

        from tests.operators.dag_bags import DagBag, sync_bag_to_db

        bag = DagBag(folder / f"{name}.py")
        assert bag.import_errors == {}
        with create_session() as session:
            session.merge(DagBundleModel(name="tests"))
        sync_bag_to_db(bag, "tests", "1")
        return bag.dags[name].test(**options)

    return start


@pytest.fixture
def run(spark, star, start):
    return start


def states(run):
    return {(found.task_id, found.map_index): found.state for found in run.get_task_instances()}


def summary(run, task_id, map_index=None):
    (instance, *_) = run.get_task_instances()
    return instance.xcom_pull(task_ids=task_id, map_indexes=map_index)


def rows(spark, table):
    spark.sql(f"REFRESH TABLE {table}")  # a task's session wrote it
    return sorted(map(tuple, spark.table(table).collect()))


def test_the_example_dag_tpcds_star_join_prunes_and_writes_its_rows(spark, run):
    found = run("tpcds_star_join", run_conf={"year": 2000, "month": 11})
    assert found.state == "success"
    pruned = summary(found, "sales_by_category")
    assert (pruned["kept"], pruned["total"]) == (30, 61)
    assert Path(pruned["uri"]).exists()
    november = rows(spark, "sales_by_category")
    assert [row[:3] for row in november] == [("c0", "TN", 150), ("c1", "TN", 150)]


def test_the_next_run_does_not_read_keys_that_matched_all_partitions(run, tmp_path, monkeypatch):
    monkeypatch.setattr("airflow_hive_opt.provider.earlier_runs._ONE_IN_TEN", 0)
    (tmp_path / "asking.py").write_text(
        "from datetime import datetime\n"
        "from airflow.sdk import DAG\n"
        "from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator\n"
        "sql = 'SELECT count(d.d_year) FROM store_sales s JOIN date_dim d "
        "ON s.ss_sold_date_sk = d.d_date_sk'\n"
        "with DAG('asking', schedule='@daily', start_date=datetime(2026, 1, 1), catchup=False):\n"
        "    MapJoinPruneOperator(task_id='free', sql=sql)\n"
        "    MapJoinPruneOperator(task_id='gated', sql=sql, max_partitions=100)\n"
    )
    found = []
    for day in (1, 2):
        options = {"logical_date": datetime(2026, 2, day, tzinfo=timezone.utc)}
        ended = run("asking", folder=tmp_path, **options)
        assert ended.state == "success"
        for task in ("free", "gated"):
            (decision,) = summary(ended, task)["decisions"]
            found.append((task, decision["reason"]))
    assert found == [
        ("free", "ALL_PARTITIONS_MATCH"),
        ("gated", "ALL_PARTITIONS_MATCH"),
        ("free", "NOT_ASKED_AGAIN"),
        ("gated", "ALL_PARTITIONS_MATCH"),
    ]


def name_descriptor(instance, uri):
    """Does what a task could do that pushes its own XCom."""
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    from airflow_hive_opt.links.pages import DESCRIPTOR_KEY

    of = {"dag_id": instance.dag_id, "task_id": instance.task_id, "run_id": instance.run_id}
    with create_session() as session:
        XComModel.set(key=DESCRIPTOR_KEY, value=uri, session=session, **of)


def test_the_links_of_a_run_lead_to_its_own_descriptor_and_explanation_only(run, web, tmp_path):
    found = run("tpcds_star_join", run_conf={"year": 2000, "month": 10})
    client, user = web
    (instance,) = found.get_task_instances()
    address = f"/api/v2/dags/{found.dag_id}/dagRuns/{found.run_id}/taskInstances"
    links = client.get(f"{address}/{instance.task_id}/links", headers=user).json()["extra_links"]
    assert set(links) == {"Partition descriptor", "Explain pruning", "Spark UI"}
    assert links["Spark UI"] is None
    descriptor = client.get(links["Partition descriptor"], headers=user).json()
    assert descriptor["sha256"] == summary(found, "sales_by_category")["digest"]
    assert len(descriptor["targets"][0]["partitions"]) == 31
    explained = client.get(links["Explain pruning"], headers=user).text
    assert explained.startswith("kept 31 of 61 partitions")
    assert "ss (default.store_sales): PRUNED" in explained
    assert "31 keys of date_dim: SELECT DISTINCT" in explained
    assert "    and 11 more" in explained
    for link in ("Partition descriptor", "Explain pruning"):
        assert client.get(links[link]).status_code == 401
        other = links[link].replace(found.dag_id, "split_sales")
        assert client.get(other, headers=user).status_code == 404
    mine = Path(summary(found, "sales_by_category")["uri"])
    elsewhere = tmp_path.with_name(f"{tmp_path.name}-and-more") / "1.json"
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(mine.read_bytes())
    for uri in (
        str(elsewhere),
        elsewhere.as_uri(),
        f"{tmp_path}/../{elsewhere.parent.name}/1.json",
    ):
        name_descriptor(instance, uri)
        refused = client.get(links["Partition descriptor"], headers=user)
        assert refused.status_code == 404
        assert "the API server shows only partition lists below" in refused.json()["detail"]
    run_folder = mine.parents[2]
    for uri in (  # of another DAG, of another run, and what is no descriptor of a task's
        tmp_path / "another" / run_folder.name / "t" / "-1" / "1.json",
        run_folder.with_name("another") / "t" / "-1" / "1.json",
        mine.with_name("1.report.json"),
    ):
        uri.parent.mkdir(parents=True, exist_ok=True)
        uri.write_bytes(mine.read_bytes())
        name_descriptor(instance, str(uri))
        assert client.get(links["Explain pruning"], headers=user).status_code == 404
    name_descriptor(instance, "\ud800" * 1000)
    assert client.get(links["Explain pruning"], headers=user).status_code == 404
    of_its_local_task = run_folder / "local_task" / "-1" / "1.json"
    of_its_local_task.parent.mkdir(parents=True)
    of_its_local_task.write_bytes(mine.read_bytes())
    for uri in (mine, of_its_local_task):
        name_descriptor(instance, str(uri))
        assert client.get(links["Partition descriptor"], headers=user).json() == descriptor
    written = decode(mine.read_bytes())
    (decision,) = written.decisions
    odd = replace(written, decisions=(replace(decision, message="\ud800"),))
    mine.write_bytes(encode(odd))
    name_descriptor(instance, str(mine))
    shown = client.get(links["Partition descriptor"], headers=user).json()
    assert shown["decisions"][0]["message"] == "\ud800"
    assert "\\ud800" in client.get(links["Explain pruning"], headers=user).text
    mine.write_bytes(mine.read_bytes().replace(b"PRUNED", b"prunes"))
    altered = client.get(links["Explain pruning"], headers=user)
    assert (altered.status_code, "changed" in altered.text) == (404, True)
    mine.unlink()
    gone = client.get(links["Explain pruning"], headers=user)
    assert (gone.status_code, "it was deleted" in gone.text) == (404, True)


def test_the_example_dag_split_sales_can_stop_after_the_local_task(spark, run):
    looked = run("split_sales", run_conf={"month": 10, "prune_only": True})
    assert states(looked)["sales.map_join", -1] == "skipped"
    assert summary(looked, "sales.local_task")["kept"] == 31
    found = run("split_sales", run_conf={"month": 10})
    assert found.state == "success"
    assert summary(found, "sales.map_join")["uri"] == summary(found, "sales.local_task")["uri"]
    assert [row[2] for row in rows(spark, "sales_by_category")] == [155, 155]


def test_the_example_dag_checked_sales_prunes_in_airflows_sql_operators(
    spark, run, web, monkeypatch
):
    monkeypatch.setenv("AIRFLOW_CONN_HIVE_OPT_DEFAULT", "hive-opt://")
    found = run("checked_sales", run_conf={"year": 2000, "month": 11})
    assert set(states(found).values()) == {"success"}
    assert [row[2] for row in rows(spark, "sales_by_category")] == [150, 150]
    (instance, *_) = found.get_task_instances()
    for task in ("wait_for_sales", "sales_by_category", "no_sale_is_missing"):
        pruned = instance.xcom_pull(task_ids=task, key="hive_opt_summary")
        assert (pruned["kept"], pruned["total"]) == (30, 61)
        page = _page(web, found, task)
        assert (page["kept"], page["total"], page["descriptor"]) == (30, 61, "there")
        assert page["scans"][0]["table"] == "default.store_sales"
        assert bool(page["stages"]) is (task != "no_sale_is_missing")  # Hive has no such subquery


def _page(web, run, task):
    """What the task's page shows."""
    client, user = web
    address = f"/hive_opt/api/dags/{run.dag_id}/runs/{quote(run.run_id)}/tasks/{task}"
    answer = client.get(address, headers=user)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_example_dag_backfill_by_day_gives_the_same_rows_again(spark, run):
    from datetime import datetime, timezone

    day = {"logical_date": datetime(2000, 11, 5, tzinfo=timezone.utc)}
    found = run("backfill_by_day", **day)
    assert found.state == "success"
    assert summary(found, "sales_of_the_day")["kept"] == 1
    once = rows(spark, "sales_by_day")
    assert [row[-1] for row in once] == ["2000-11-05"]
    assert run("backfill_by_day", **day).state == "success"
    assert rows(spark, "sales_by_day") == once


def test_a_run_without_logical_date_takes_the_day_from_its_conf(spark, run):
    found = run("backfill_by_day", logical_date=None, run_conf={"day": "2000-11-06"})
    assert found.state == "success"
    assert "2000-11-06" in [row[-1] for row in rows(spark, "sales_by_day")]


@pytest.mark.slow
def test_the_example_dag_runs_on_a_spark_connect_server(connect_server, start, monkeypatch):
    from airflow_hive_opt.spark.session.connect import remote_session

    document = {"conn_type": "spark_connect", "host": HOST, "port": connect_server.port}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_CONNECT_DEFAULT", json.dumps(document))
    with remote_session(connect_server.url, {}) as remote:
        make_star(remote)
        try:
            found = start("connect_sales", run_conf={"year": 2000, "month": 11})
            assert found.state == "success"
            pruned = summary(found, "sales_by_category")
            assert (pruned["kept"], pruned["total"]) == (30, 61)
            november = rows(remote, "sales_by_category")
            assert [row[:3] for row in november] == [("c0", "TN", 150), ("c1", "TN", 150)]
        finally:
            drop_star(remote)


def test_the_example_dag_sales_by_state_maps_over_states(spark, run):
    found = run("sales_by_state", run_conf={"states": ["TN", "CA"]})
    assert found.state == "success"
    summaries = [summary(found, "of_a_state", map_index) for map_index in (0, 1)]
    assert [each["kept"] for each in summaries] == [30, 30]
    assert len({each["uri"] for each in summaries}) == 2


@pytest.mark.parametrize("path", sorted(DAGS.glob("*.py")), ids=lambda path: path.stem)
def test_example_dags_are_imported_without_a_database(path):
    from tests.operators.dag_bags import DagBag

    if path.stem == "spark_application_sales":
        pytest.importorskip("airflow.providers.cncf.kubernetes")
    if path.stem == "kubernetes_sales":
        given = inspect.signature(SparkSubmitOperator.__init__).parameters
        if "track_driver_via_k8s_api" not in given:
            pytest.skip("this Spark provider does not follow drivers on Kubernetes")
    assert DagBag(path).import_errors == {}


def test_the_example_dag_sales_of_the_month_reads_the_days_once(spark, run, monkeypatch):
    asked = counted(monkeypatch)
    aged(spark, "date_dim")
    reports = ("by_category", "by_state", "by_day")
    for found in (run("sales_of_the_month", run_conf={"month": 11}) for _ in range(2)):
        assert found.state == "success"
        joined = [summary(found, f"month.map_join_{name}") for name in reports]
        assert [(each["kept"], each["total"]) for each in joined] == [(30, 61)] * 3
    assert asked == ["date_dim"]
    decided = [summary(found, f"month.local_task_{name}")["key_sets"] for name in reports]
    assert [[use["code"] for use in uses] for uses in decided] == [["TAKEN"]] * 3
