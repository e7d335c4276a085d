"""Waits for a partition and a descriptor that the test creates, then joins."""

from __future__ import annotations

from airflow.sdk import DAG, Param

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.sensors.partition_descriptor import PartitionDescriptorSensor
from airflow_hive_opt.sensors.required_partitions import RequiredPartitionsSensor

SALES = "SELECT s.item, s.ds FROM late.sales s JOIN late.days d ON s.ds = d.ds"

with DAG("waiting", schedule=None, params={"uri": Param("", type="string")}):
    partitions = RequiredPartitionsSensor(
        task_id="partitions", sql=SALES, deferrable=True, poke_interval=1
    )
    descriptor = PartitionDescriptorSensor(
        task_id="descriptor", uri="{{ params.uri }}", deferrable=True, poke_interval=1
    )
    join = MapJoinPruneOperator(task_id="join", sql=f"INSERT OVERWRITE TABLE late.result {SALES}")
    [partitions, descriptor] >> join
