"""What the embedded Spark writes to its standard error, and what of it a log shows."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from airflow_hive_opt.spark.session.derby import embedded_tables
from airflow_hive_opt.spark.session.spark_log import LOGGER, SparkLog, is_configured
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.precheck import check_tables
from tests.services.java_options import SHORT_LIVED
from tests.services.thrift import create_database, create_table, thrift_client

WRITTEN = b"""\
WARNING: Using incubator modules: jdk.incubator.vector
WARN TaskSetManager: a task was slow
26/11/25 10:34:22 ERROR Executor: a task failed
java.lang.IllegalStateException: ::group::no
\tat org.Some.where(Some.java:7)
INFO Main: \x1b[31mred
"""
SHOWN = [
    ("WARNING", "TaskSetManager: a task was slow"),
    ("ERROR", "Executor: a task failed"),
    ("ERROR", "java.lang.IllegalStateException: :\\:group:\\:no"),
    ("ERROR", "\tat org.Some.where(Some.java:7)"),
    ("INFO", "Main: \\x1b[31mred"),
]


@pytest.fixture
def gateway(monkeypatch, tmp_path):
    """A JVM that only writes; what it was started with."""
    started = SimpleNamespace(options=None)

    def launch_gateway(conf, popen_kwargs):
        started.options = os.environ.get("SPARK_SUBMIT_OPTS")
        os.write(popen_kwargs["stderr"], WRITTEN)
        return SimpleNamespace(jvm=None)

    for name in ("_gateway", "_jvm"):
        monkeypatch.setattr(SparkContext, name, None)
    monkeypatch.setattr("pyspark.java_gateway.launch_gateway", launch_gateway)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Da=b")
    return started


@pytest.fixture
def py4j():
    logger = logging.getLogger("py4j")
    before = logger.level
    logger.setLevel(logging.NOTSET)
    yield logger
    logger.setLevel(before)


def relayed(conf, caplog):
    caplog.set_level(logging.INFO, logger=LOGGER)
    log = SparkLog(conf)
    log.launch()
    log.close()
    log.close()
    found = [(each.levelname, each.getMessage()) for each in caplog.records if each.name == LOGGER]
    caplog.clear()
    return found


def test_sparks_lines_are_logged_with_sparks_levels(gateway, py4j, caplog):
    assert relayed({}, caplog) == SHOWN
    ours, _, users = gateway.options.partition(" ")
    assert ours.startswith("-Dlog4j2.configurationFile=file:///")
    assert ours.endswith("/log4j2.properties")
    assert users == os.environ["SPARK_SUBMIT_OPTS"] == "-Da=b"
    assert py4j.level == logging.WARNING


def test_spark_log_level_shows_all_lines_again(gateway, py4j, caplog):
    whole = relayed({"spark.log.level": "WARN"}, caplog)
    assert whole == [("INFO", WRITTEN.decode().splitlines()[0]), *SHOWN]
    assert gateway.options == "-Da=b"
    assert py4j.level == logging.NOTSET


def test_a_level_of_py4j_that_the_user_sets_is_kept(gateway, py4j, caplog):
    py4j.setLevel(logging.DEBUG)
    relayed({}, caplog)
    assert py4j.level == logging.DEBUG


def test_a_users_own_configuration_wins(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "log4j2.properties.template").touch()
    defaults = tmp_path / "spark-defaults.conf"
    defaults.write_text("# spark.log.level INFO\nspark.ui.enabled false\n")
    java = "spark.driver.extraJavaOptions"
    assert not is_configured({java: "-Dlog4j2.formatMsgNoLookups=true", "spark.jars": "/log4j.jar"})
    assert is_configured({java: "-Dlog4j.configurationFile=/mine"})
    defaults.write_text("spark.log.level INFO\n")
    assert is_configured({})
    defaults.unlink()
    assert not is_configured({})
    (tmp_path / "log4j2.xml").touch()
    assert is_configured({})
    (tmp_path / "log4j2.xml").unlink()
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dlog4j2.configurationFile=/mine")
    assert is_configured({})


def python(script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a script that starts a Spark of its own, and logs to its standard output."""
    head = "import logging, sys\nlogging.basicConfig(level='INFO', stream=sys.stdout)\n"
    return subprocess.run(
        [sys.executable, "-c", head + script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **variables},
        check=False,
    )


TASK = f"""
from pathlib import Path
from types import SimpleNamespace
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
from airflow_hive_opt.spark.session.session import spark_session
folder = Path(sys.argv[1])
short = {{"spark.driver.extraJavaOptions": "{SHORT_LIVED}"}}
with spark_session("tables", {{**embedded_conf(folder, "local[1]"), **short}}) as spark:
    frame = spark.range(4).selectExpr("CAST(id AS INT) id", "CAST(id AS INT) p")
    frame.coalesce(1).write.partitionBy("p").saveAsTable("visits")
    frame.coalesce(1).write.saveAsTable("days")
print("== TASK", flush=True)
operator = MapJoinPruneOperator(
    task_id="t",
    sql="SELECT v.id FROM visits v JOIN days d ON v.p = d.p AND d.id < 2 ORDER BY 1",
    descriptor_path=str(folder / "descriptors"),
    conf=short,
)
instance = SimpleNamespace(dag_id="d", run_id="r", task_id="t", map_index=-1, try_number=1)
instance.xcom_push = lambda key, value: None
operator.execute({{"ti": instance, "params": {{}}}})
"""


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """A task that has run, and its warehouse."""
    folder = tmp_path_factory.mktemp("task")
    return python(TASK, folder, AIRFLOW__HIVE_OPT__WAREHOUSE=str(folder)), folder


@pytest.mark.slow
def test_the_log_of_a_successful_task_is_short_and_has_no_errors(task):
    done, _ = task
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stderr == ""  # Airflow would show it as errors
    lines = done.stdout.partition("== TASK\n")[2].splitlines()
    assert 5 < len(lines) <= 20
    assert not [line for line in lines if "error" in line.lower()]
    assert "kept 2 of 4 partitions" in lines[-1]


@pytest.mark.slow
def test_the_tables_of_a_warehouse_are_known_without_spark(task, tmp_path, monkeypatch):
    _, folder = task
    tables = embedded_tables(folder)
    assert tables == {"default": {"days", "visits"}}
    with pytest.raises(PlanError, match="there is no table vists, did you mean visits"):
        check_tables("SELECT * FROM vists", tables)
    (folder / "metastore_db" / "db.lck").touch()
    assert embedded_tables(folder) == tables
    assert embedded_tables(tmp_path) is None
    (tmp_path / "hive-site.xml").touch()
    monkeypatch.setenv("HIVE_CONF_DIR", str(tmp_path))
    assert embedded_tables(folder) is None


START = """
from pathlib import Path
from airflow_hive_opt.spark.session.java import SparkStartError
from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
from airflow_hive_opt.spark.session.session import spark_session
name, _, value = sys.argv[2].partition("=")
try:
    with spark_session("t", {**embedded_conf(Path(sys.argv[1]), "local[1]"), name: value}):
        pass
except SparkStartError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["", "spark.hadoop."])
def test_a_metastore_that_does_not_answer_is_named_in_a_short_log(tmp_path, prefix):
    done = python(START, tmp_path, f"{prefix}hive.metastore.uris=thrift://localhost:1")
    lines = done.stdout.splitlines()
    assert lines[-1].startswith("no answer from thrift://localhost:1, which is hive.metastore.uris")
    assert len(lines) < 12
    assert done.stderr == ""


@pytest.mark.slow
def test_a_jvm_that_can_not_start_is_told_with_its_reason(tmp_path):
    done = python(START, tmp_path, "spark.driver.extraJavaOptions=-Xms9x")
    *_, last = done.stdout.splitlines()
    assert last.startswith("Spark could not start: Invalid initial heap size: -Xms9x")


WRITE = f"""
from pathlib import Path
from airflow_hive_opt.documents.job import Job, Stages
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
from airflow_hive_opt.spark.session.session import spark_session
folder, uri = sys.argv[1:]
conf = {{**embedded_conf(Path(folder), "local[1]"), "spark.hadoop.hive.metastore.uris": uri}}
conf["spark.driver.extraJavaOptions"] = "{SHORT_LIVED}"
sql = "INSERT OVERWRITE TABLE first.r PARTITION (p = 'x') SELECT 7"
with spark_session("t", conf) as spark:
    print(run_job(spark, Job(sql, folder + "/d.json", Stages.BOTH)).status)
    print(spark.table("first.r").collect())
"""


@pytest.mark.slow
def test_hive_keeps_its_metastore_connection_in_its_first_write(metastore_service, tmp_path):
    with thrift_client(metastore_service) as client:
        create_database(client, "first", str(tmp_path / "first"))
        columns = [("id", "int")], [("p", "string")]
        create_table(client, "first.r", *columns, f"file:{tmp_path}/first/r")
    done = python(WRITE, tmp_path, metastore_service.uri)
    assert "TTransportException" not in done.stdout
    assert "done\n[Row(id=7, p='x')]\n" in done.stdout
