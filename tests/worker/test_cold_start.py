"""What a key query loads in a new process."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq

_SCRIPT = """
import sys
from upath import UPath
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.pruning.decisions import KeySource, Layer
from airflow_hive_opt.pruning.query import ColumnRef
from airflow_hive_opt.statement.catalog import Column, Table
from airflow_hive_opt.documents.job import KeyBounds
from airflow_hive_opt.worker.engine import WorkerEngine
from airflow_hive_opt.worker.tables import Tables
print("before", *sys.modules)

table = Table("d", (Column("k", "int"), Column("s", "string")))
class Known:
    table = lambda self, name: table
    storage = lambda self, _: Storage(sys.argv[1], "parquet")

engine = WorkerEngine(Tables(Known(), UPath), KeyBounds(100, 1000), {})
sql = "SELECT DISTINCT `d`.`k` FROM d AS `d` WHERE (d.s = 'b')"
source = KeySource(("d",), "d", sql, (ColumnRef("d", "k"),), (), (), True)
keys = engine.collect(source, None)
assert keys.rows == ((2,),)
fact = Table("f", (), (Column("p", "string"),))
partitions = [Partition(("2",)), Partition(("3",))]
found = engine.fulfilling(fact, [Layer("f")], partitions, ["length(f.p) = 1", "f.p = d.k"], keys)
assert found == partitions[:1]
assert engine.calls == ("length",)
print("after", *sys.modules)
"""


def test_a_key_query_loads_neither_pandas_nor_spark_nor_airflow(tmp_path):
    data = {"k": pa.array([1, 2], pa.int32()), "s": ["a", "b"]}
    pq.write_table(pa.table(data), tmp_path / "a.parquet")
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, after = (
        {name.partition(".")[0] for name in line.split()} for line in done.stdout.splitlines()
    )
    assert {"duckdb", "pyarrow"} <= after - before
    assert after.isdisjoint({"pandas", "pyspark", "py4j", "airflow"})
