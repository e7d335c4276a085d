"""Airflow's ``AnalyticsOperator``, which is DataFusion, runs a query with a list's condition."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from airflow_hive_opt.engines import datafusion
from tests.engines.opened import opened
from tests.engines.tables import FACT, KEYS

config = pytest.importorskip("airflow.providers.common.sql.config")
analytics = pytest.importorskip("airflow.providers.common.sql.operators.analytics")


def test_the_operator_opens_the_files_of_the_condition(lake):
    scan = lake.scan(f"SELECT f.id FROM {FACT} f JOIN {KEYS} s ON f.k = s.k AND s.k IN ('a', 'A')")
    source = config.DataSourceConfig(
        conn_id="",
        table_name="fact",
        uri=f"file://{lake.folder}/fact/",
        format="parquet",
        options={
            # as texts: DataFusion does not convert the name of NULL's folder to another type
            "table_partition_cols": [(name, pa.string()) for name in scan.columns],
            "schema": pa.schema([("id", pa.int64())]),
        },
    )
    operator = analytics.AnalyticsOperator(
        task_id="query",
        datasource_configs=[source],
        queries=[f"SELECT id FROM fact WHERE {datafusion.condition(scan)} ORDER BY id"],
        result_output_format="json",
    )
    with opened(lake.folder / "fact") as files:
        (answer,) = json.loads(operator.execute({}))
    places = {part.location for part in scan.partitions}
    expected = sorted(
        id_
        for place in places
        if place.startswith(f"file:{lake.folder}/fact/")
        for id_ in lake.ids[place]
    )
    assert [row["id"] for row in answer["data"]] == expected != []
    assert len(files) == len(expected)
