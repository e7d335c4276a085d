"""Statements as applications on YARN, in both deploy modes."""

from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_hive_opt.operators.local_task import LocalTaskOperator
from airflow_hive_opt.operators.map_join import MapJoinOperator
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from tests.yarn.tasks import ITEMS, context, made


def rows(session, sql: str) -> list[tuple[int, int]]:
    session.catalog.refreshTable("shop.result")
    return sorted(map(tuple, session.sql(sql).collect()))


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_a_pruned_insert_writes_what_plain_spark_writes(
    cluster, connect, session, conf, result, tmp_path, mode
):
    connect(cluster, mode)
    sql = f"INSERT INTO {result} {ITEMS}"
    summary = made(MapJoinPruneOperator, sql, tmp_path, conf).execute(context())
    assert (summary["kept"], summary["total"], summary["reason"]) == (3, 12, "PRUNED")
    assert summary["work"]["map join"]["partitions_fetched"] == 3
    application = cluster.application(summary["application_id"])
    assert (application["state"], application["finalStatus"]) == ("FINISHED", "SUCCEEDED")
    assert application["queue"] == "root.daily"
    assert application["name"] == "airflow d.t r"
    listed = f"{ITEMS} AND s.ds IN (6, 7, 8)"
    assert rows(session, f"SELECT * FROM {result}") == rows(session, ITEMS) == rows(session, listed)


def test_the_split_form_submits_one_application_for_its_map_join(
    cluster, connect, session, conf, result, tmp_path
):
    connect(cluster, "cluster")
    before = len(cluster.applications())
    sql = f"INSERT INTO {result} {ITEMS}"
    pruned = made(
        LocalTaskOperator,
        sql,
        tmp_path,
        conf,
        metastore_conn_id="metastore",
        local_task="worker",
    ).execute(context())
    assert len(cluster.applications()) == before
    joined = made(MapJoinOperator, sql, tmp_path, conf, descriptor=pruned).execute(context())
    assert joined["work"]["map join"]["partitions_fetched"] == 3
    assert len(cluster.applications()) == before + 1
    assert rows(session, f"SELECT * FROM {result}") == rows(session, ITEMS)


def test_a_wrong_statement_fails_with_the_drivers_own_message(cluster, connect, conf, tmp_path):
    connect(cluster, "cluster")
    sql = "SELECT nope FROM shop.sales"
    with pytest.raises(AirflowFailException, match=r"^line 1, column 8: there is no column nope"):
        made(MapJoinPruneOperator, sql, tmp_path, conf).execute(context())
