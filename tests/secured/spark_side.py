"""Spark itself on a metastore with Kerberos, in a process whose JVM has the client's ticket.

python -m tests.secured.spark_side FOLDER OUTPUT SPARK_SETTING=VALUE ...

The connection ``secured`` is in the environment. Writes what a pruned and a plain run have made.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from airflow_hive_opt.hooks.hive_metastore import spark_conf_of
from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
from airflow_hive_opt.spark.session.session import spark_session
from tests.worker.tasks import Tasks

SQL = "SELECT f.id FROM secured.fact f JOIN secured.keys k ON f.day = k.day AND k.id < 3"


def _main(folder: str, output: str, *pairs: str) -> None:
    given = dict(pair.split("=", 1) for pair in pairs)
    conf = {**embedded_conf(Path(folder), "local[2]"), **spark_conf_of("secured"), **given}
    with spark_session("secured", conf) as session:
        session.sparkContext.setLogLevel("ERROR")
        session.sql(f"CREATE DATABASE secured LOCATION '{folder}/secured'")
        days = "SELECT CAST(id AS INT) AS id, CONCAT('day-', id) AS day FROM range(20)"
        session.sql(f"CREATE TABLE secured.keys STORED AS PARQUET AS {days}")
        session.sql(
            "CREATE TABLE secured.fact (id INT) PARTITIONED BY (day STRING) STORED AS PARQUET"
        )
        session.sql(f"INSERT INTO secured.fact {days}")
        tasks = Tasks(session, Path(folder))
        found = {"plain": tasks.rows(SQL)}
        for local_task in ("worker", "spark"):
            made = f"CREATE TABLE secured.by_{local_task} STORED AS PARQUET AS {SQL}"
            options = {"local_task": local_task, "metastore_conn_id": "secured"}
            summary = tasks.both(made, **options)
            rows = tasks.rows(f"SELECT * FROM secured.by_{local_task}")
            found[local_task] = {"summary": summary, "rows": rows}
    Path(output).write_text(json.dumps(found))


if __name__ == "__main__":
    _main(*sys.argv[1:])
