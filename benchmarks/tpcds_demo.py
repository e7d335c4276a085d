"""The main job on real input: TPC-DS data, a partitioned warehouse, the example DAG in Airflow.

All data is stored under ``.demo/`` and used again. Prints the rows, the pruning, and the times of
plain Spark and of the operator for the same statement.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from upath import UPath

from airflow_hive_opt.documents.report import read_report
from benchmarks import demo_pages

PROJECT = Path(__file__).resolve().parents[1]
DEMO = PROJECT / ".demo"
DATA = DEMO / "tpcds"
WAREHOUSE = DEMO / "warehouse"
READY = WAREHOUSE / "ready"
DESCRIPTORS = demo_pages.HOME / "hive_opt_descriptors"
TABLES = ("store_sales", "date_dim", "item", "store")
BIN = Path(sys.executable).parent
PARTITION_COLUMN = "ss_sold_date_sk"
RESULT = "i_category string, s_state string, sales bigint, quantity bigint, revenue decimal(17,2)"


def main() -> None:
    """Runs the demo, or one part of it in its own process, since Derby serves one JVM only."""
    if len(sys.argv) > 1:
        {"build": build, "plain": plain, "compare": compare}[sys.argv[1]]()
        return
    began = time.monotonic()
    generate()
    if not READY.exists():
        shutil.rmtree(WAREHOUSE, ignore_errors=True)
        say("building the warehouse: store_sales partitioned by day (about a minute)")
        part("build")
    say("running the DAG tpcds_star_join: airflow dags test")
    summary = run_dag()
    say("running the same statement on plain Spark")
    part("plain")
    part("compare", json.dumps(summary))
    say("the run's page in Airflow")
    demo_pages.show(newest_run())
    say(f"done in {time.monotonic() - began:.0f} s; all of it lies in {DEMO}")


def say(text: str) -> None:
    """Prints one line of progress."""
    print(f"==> {text}", flush=True)


def part(name: str, *arguments: str) -> None:
    """Runs one part in a separate process; Spark's output goes to a log file."""
    log = DEMO / f"{name}.log"
    with log.open("w") as file:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.tpcds_demo", name, *arguments],
            stderr=file,
            check=False,
            cwd=PROJECT,
        )
    if done.returncode:
        sys.exit(f"the part {name!r} of the demo failed, see {log}")


def generate() -> None:
    """Generates TPC-DS data at scale 1, as Parquet."""
    if all((DATA / f"{table}.parquet").exists() for table in TABLES):
        return
    say("generating TPC-DS data at scale 1")
    unfinished = DEMO / "tpcds.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    subprocess.run(
        [
            BIN / "tpcgen-cli",
            *("tpcds", "parquet", "--scale-factor", "1"),
            f"--tables={','.join(TABLES)}",
            f"--output-dir={unfinished}",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    shutil.rmtree(DATA, ignore_errors=True)
    unfinished.rename(DATA)


def session(name: str):
    """A session on the demo's warehouse."""
    from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
    from airflow_hive_opt.spark.session.session import spark_session

    return spark_session(name, embedded_conf(WAREHOUSE))


def build() -> None:
    """Creates four TPC-DS tables, one of them partitioned, and two result tables."""
    with session("build") as spark:
        spark.sparkContext.setLogLevel("ERROR")
        for table in TABLES:
            frame = spark.read.parquet(str(DATA / f"{table}.parquet"))
            if table == "store_sales":
                writer = frame.repartition(8, PARTITION_COLUMN).sortWithinPartitions(
                    PARTITION_COLUMN
                )
                writer.write.partitionBy(PARTITION_COLUMN).saveAsTable(table)
            else:
                frame.coalesce(1).write.saveAsTable(table)
        for table in ("sales_by_category", "sales_by_category_plain"):
            spark.sql(f"CREATE TABLE {table} ({RESULT}) STORED AS PARQUET")
    READY.touch()


def run_dag() -> dict:
    """Runs the example DAG in Airflow; returns the report that its task wrote."""
    log = DEMO / "airflow.log"
    shutil.rmtree(DESCRIPTORS, ignore_errors=True)
    with log.open("w") as file:
        for command in (["db", "migrate"], ["dags", "test", "tpcds_star_join"]):
            done = subprocess.run(
                [BIN / "airflow", *command],
                env=demo_pages.environment(),
                stdout=file,
                stderr=subprocess.STDOUT,
                check=False,
            )
            if done.returncode:
                sys.exit(f"airflow {' '.join(command)} failed, see {log}")
    for line in log.read_text().splitlines():
        if "kept " in line:
            print(f"    {line[line.index('kept ') :].partition(' [')[0]}")
    (report,) = DESCRIPTORS.rglob("*.report.json")
    return dict(read_report(UPath(report)).summary)


def newest_run() -> str:
    """The ID of the run that :func:`run_dag` has made."""
    with sqlite3.connect(demo_pages.HOME / "airflow.db") as database:
        (found,) = database.execute(
            "SELECT run_id FROM dag_run WHERE dag_id = 'tpcds_star_join' ORDER BY id DESC LIMIT 1"
        ).fetchone()
    return str(found)


def statement(target: str) -> str:
    """The DAG's statement with its default parameters, for another result table."""
    text = (PROJECT / "dags" / "sql" / "sales_by_category.sql").read_text()
    text = text.replace("{{ params.year }}", "2000").replace("{{ params.month }}", "11")
    return text.replace("TABLE sales_by_category", f"TABLE {target}")


def plain() -> None:
    """Runs the same statement on plain Spark, in a fresh session like the operator's."""
    from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog

    with session("plain") as spark:
        before = SparkCatalog(spark).work()
        began = time.monotonic()
        spark.sql(statement("sales_by_category_plain"))
        seconds = time.monotonic() - began
        work = SparkCatalog(spark).work() - before
    (DEMO / "plain.json").write_text(
        json.dumps(
            {
                "seconds": seconds,
                "metastore_calls": work.metastore_calls,
                "partitions_fetched": work.partitions_fetched,
                "files_listed": work.files_listed,
            }
        )
    )


def compare() -> None:
    """Prints the rows and compares both runs; exits 1 if rows differ."""
    summary = json.loads(sys.argv[2])
    other = json.loads((DEMO / "plain.json").read_text())
    with session("compare") as spark:
        spark.sparkContext.setLogLevel("ERROR")
        ours, theirs = (
            spark.table(name).orderBy("i_category", "s_state").collect()
            for name in ("sales_by_category", "sales_by_category_plain")
        )
    print(f"\n{'category':<14}{'state':<7}{'sales':>8}{'quantity':>10}{'revenue':>16}")
    for row in ours:
        print(
            f"{row[0] or 'NULL':<14}{row[1] or 'NULL':<7}{row[2]:>8,}{row[3] or 0:>10,}"
            f"{row[4] or 0:>16,}"
        )
    same = sorted(ours, key=repr) == sorted(theirs, key=repr)
    print(f"\nrows equal to plain Spark's: {'yes' if same else 'NO'} ({len(ours)} rows)")
    work = {
        name: sum(phase[name] for phase in summary["work"].values())
        for name in ("metastore_calls", "partitions_fetched", "files_listed")
    }
    seconds = sum(summary["seconds"].values())
    lines = [
        ("seconds, session apart", f"{other['seconds']:.1f}", f"{seconds:.1f}"),
        *(
            (name.replace("_", " "), f"{other[name]:,}", f"{work[name]:,}")
            for name in ("metastore_calls", "partitions_fetched", "files_listed")
        ),
    ]
    print(f"\n{'':<26}{'plain Spark':>12}{'operator':>12}")
    for label, left, right in lines:
        print(f"{label:<26}{left:>12}{right:>12}")
    print()
    if not same:
        sys.exit(1)


if __name__ == "__main__":
    main()
