"""Makes the suite's source tables: python -m tests.faults.make_tables SPARK_SETTING=VALUE ..."""

from __future__ import annotations

import sys

from airflow_hive_opt.spark.session import spark_session
from tests.faults.tables import SOURCES

with spark_session("make tables", dict(pair.split("=", 1) for pair in sys.argv[1:])) as spark:
    for sql in SOURCES:
        spark.sql(sql)
