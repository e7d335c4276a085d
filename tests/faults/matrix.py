"""Runs every statement that writes with every metastore fault, and compares it with plain Spark.

python -m tests.faults.matrix METASTORE_PORT FOLDER STEP KIND ...

Uses one warm Spark whose metastore is behind the proxy. Prints a JSON object for each kind and
fault: the number of runs, and the runs that differ. Every STEP-th call fails.
"""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import replace
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.documents.job import Job, Stages, Status
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.session.session import spark_session
from tests.faults.proxy import PATIENCE_OF_CLIENTS, Fault, Proxy, proxy
from tests.faults.tables import DATABASE, KINDS, SOURCES, Kind, State, Tables
from tests.services.java_options import SHORT_LIVED
from tests.services.thrift import create_database, thrift_client
from tests.spark.handed_over import map_join_of

FAULTS = tuple(fault for fault in Fault if fault is not Fault.NONE)
SPARSE = 8  # a late call takes seconds: of those with other faults only each eighth is late


class Matrix:
    """The runs of one Spark."""

    def __init__(self, spark, meter: Proxy, tables: Tables, folder: Path, step: int) -> None:
        self._spark = spark
        self._proxy = meter
        self._tables = tables
        self._folder = folder
        self._step = step

    def compare(self, kind: Kind, fault: Fault) -> dict[str, object]:
        """Ours under the fault at each call: a state that plain Spark leaves, or before, or all."""
        step = self._step * (SPARSE if fault is Fault.LATE else 1)
        before = self._state_of(self._tables.copy(kind.template))
        _, complete, calls = self._plain(kind, Fault.NONE, 0)
        plain_states = [before, complete]
        doubled_by_plain = 0
        for at in range(1, calls + 1, max(2, step // 2) if step > 1 else 1):
            _, state, _ = self._plain(kind, fault, at)
            plain_states.append(state)
            doubled_by_plain += _rows(state) > max(_rows(complete), _rows(before))
        runs, differing = 0, []
        for stages in (Stages.BOTH, Stages.MAP_JOIN):
            done, state, calls = self._ours(kind, stages, Fault.NONE, 0)
            if not done or state != complete:
                differing.append(f"{stages} without a fault: {state}, not {complete}")
            for at in range(1, calls + 1, step):
                done, state, _ = self._ours(kind, stages, fault, at)
                runs += 1
                if state not in plain_states or (done and state != complete):
                    differing.append(f"{stages}, call {at} of {calls}: done {done}, {state}")
        return {
            "kind": kind.name,
            "fault": fault,
            "runs": runs,
            "differing": differing,
            "states of plain Spark": len({json.dumps(s, sort_keys=True) for s in plain_states}),
            "more rows by plain Spark": doubled_by_plain,
        }

    def _plain(self, kind: Kind, fault: Fault, at: int) -> tuple[bool, State, int]:
        name = self._tables.copy(kind.template)
        session = self._mended().newSession()
        self._proxy.plan(fault, at)
        try:
            session.sql(kind.sql.format(t=f"{DATABASE}.{name}"))
            done = True
        except (PySparkException, Py4JJavaError):
            done = False
        return done, *self._concluded(name)

    def _ours(self, kind: Kind, stages: Stages, fault: Fault, at: int) -> tuple[bool, State, int]:
        name = self._tables.copy(kind.template)
        sql = kind.sql.format(t=f"{DATABASE}.{name}")
        folder = self._folder / "runs" / name
        self._mended()
        job = Job(sql, str(folder / "1.json"), Stages.BOTH)
        if stages is Stages.MAP_JOIN:
            local_task = replace(job, stages=Stages.LOCAL_TASK)
            pruned = run_job(self._spark.newSession(), local_task)
            assert pruned.status is Status.DONE, pruned.message
            assert pruned.summary["kept"] == kind.kept, pruned.message
            job = map_join_of(local_task, pruned)
        self._proxy.plan(fault, at)
        outcome = run_job(self._spark.newSession(), job)
        return outcome.status is Status.DONE, *self._concluded(name)

    def _mended(self):
        """The Spark, with its metastore's client connected again after the fault before."""
        self._proxy.plan()
        for _ in range(20):
            try:
                self._spark.sql("SHOW DATABASES").collect()
                break
            except (PySparkException, Py4JJavaError):
                continue
        return self._spark

    def _concluded(self, name: str) -> tuple[State, int]:
        calls = len(self._proxy.calls)
        self._proxy.plan()
        return self._state_of(name), calls

    def _state_of(self, name: str) -> State:
        found = self._tables.state(name)
        self._tables.drop(name)
        return found


def _rows(state: State) -> int:
    return sum(map(len, (state or {}).values()))


def main(port: str, folder: str, step: str, *names: str) -> None:
    logging.getLogger("airflow_hive_opt").setLevel(logging.ERROR)
    place = Path(folder)
    service = type("Service", (), {"host": "127.0.0.1", "port": int(port)})
    with proxy(int(port)) as meter, thrift_client(service) as client:
        conf = {
            "spark.master": "local[2]",
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(place / "warehouse"),
            "spark.hadoop.hive.metastore.uris": meter.uri,
            # Hive's own patience takes seconds for each fault
            "spark.hadoop.hive.metastore.failure.retries": "1",
            "spark.hadoop.hive.metastore.connect.retries": "1",
            "spark.hadoop.hive.metastore.client.connect.retry.delay": "0",
            "spark.hadoop.hive.metastore.client.socket.timeout": f"{PATIENCE_OF_CLIENTS}s",
            "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
            "spark.driver.extraJavaOptions": SHORT_LIVED,
        }
        with spark_session("faults", conf) as spark:
            spark.sparkContext.setLogLevel("OFF")
            if DATABASE not in client.get_all_databases():
                create_database(client, DATABASE, f"file:{place}/{DATABASE}")
                for sql in SOURCES:
                    spark.sql(sql)
            matrix = Matrix(spark, meter, Tables(client, f"file:{place}/copies"), place, int(step))
            for kind in KINDS:
                if kind.name in names or not names:
                    for fault in FAULTS:
                        print(json.dumps(matrix.compare(kind, fault)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
