"""Makes the suite's source tables: python -m tests.faults.make_tables SPARK_SETTING=VALUE ..."""

from __future__ import annotations

import sys

from airflow_hive_opt.spark.session.session import spark_session
from tests.faults.tables import SOURCES


def main(*pairs: str) -> None:
    with spark_session("make tables", dict(pair.split("=", 1) for pair in pairs)) as spark:
        for sql in SOURCES:
            spark.sql(sql)


if __name__ == "__main__":
    main(*sys.argv[1:])
