"""Which partitions are required if several small tables prune one table."""

import pytest
from pyspark.errors import PySparkException
from upath import UPath

from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.documents.required_keys import keys_path, read_keys
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.statement.errors import PlanError
from tests.cases import slow_but
from tests.spark.stages import job_of, prune, required_partitions

SQL = (
    "SELECT f.id FROM needed.fact f JOIN needed.days d ON f.ds = d.ds "
    "JOIN needed.regions r ON f.region = r.code"
)


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE needed")
    spark.sql(
        "CREATE TABLE needed.fact (id INT) USING parquet PARTITIONED BY (ds STRING, region STRING)"
    )
    spark.sql("CREATE TABLE needed.days AS SELECT * FROM VALUES ('d1'), ('d2') AS t(ds)")
    spark.sql("CREATE TABLE needed.regions AS SELECT * FROM VALUES ('n'), ('s') AS t(code)")
    yield
    spark.sql("DROP DATABASE needed CASCADE")


def test_every_combination_of_the_keys_is_required(spark):
    (found,) = required_partitions(spark, job_of(SQL))
    assert found.columns == ("ds", "region")
    assert found.tuples == (("d1", "n"), ("d1", "s"), ("d2", "n"), ("d2", "s"))


def test_only_keys_of_the_chosen_columns_are_required(spark):
    (found,) = required_partitions(spark, job_of(SQL), ["DS"])
    assert (found.columns, found.tuples) == (("ds",), (("d1",), ("d2",)))
    assert found.all_columns == ("ds", "region")
    with pytest.raises(
        PlanError,
        match="month are not .* prune ds, region",
    ):
        required_partitions(spark, job_of(SQL), ["month"])


def test_keys_that_can_not_be_read_are_an_error_for_a_sensor(spark):
    """A sensor that waited for nothing would let the join run early."""
    sql = SQL.replace("needed.days d", "(SELECT raise_error('no') AS ds FROM needed.days) d")
    with pytest.raises(PySparkException, match="no"):
        required_partitions(spark, job_of(sql))


def test_a_table_that_can_not_be_looked_up_is_an_error_for_a_sensor(spark, monkeypatch):
    def lookup(self, name):
        raise PySparkException("no answer")

    monkeypatch.setattr(SparkCatalog, "table", lookup)
    with pytest.raises(PySparkException, match="no answer"):
        required_partitions(spark, job_of(SQL))


def test_each_reader_of_a_cte_requires_its_own_partitions(spark):
    sql = (
        "WITH t AS (SELECT f.id, d.ds AS day FROM needed.fact f JOIN needed.days d ON f.ds = d.ds) "
        "SELECT id FROM t WHERE day = 'd1' UNION ALL SELECT id FROM t WHERE day = 'd2'"
    )
    found = required_partitions(spark, job_of(sql))
    assert [entry.tuples for entry in found] == [(("d1",),), (("d2",),)]


OF_A_CTE = (
    "WITH t AS (SELECT f.id, d.ds AS day FROM needed.fact f JOIN needed.days d ON f.ds = d.ds) "
    "SELECT id FROM t WHERE day = 'd1' UNION ALL SELECT id FROM t WHERE day = 'd2'"
)
SKELETON = "SELECT f.id FROM needed.fact f JOIN needed.days d ON upper(f.ds) = d.ds"
PRESERVED = "SELECT f.id FROM needed.fact f LEFT JOIN needed.days d ON f.ds = d.ds"
NO_KEYS = f"{SQL} AND d.ds = 'none'"


@pytest.mark.parametrize(
    "sql", slow_but([SQL, OF_A_CTE, SKELETON, PRESERVED, NO_KEYS, "SELECT 1"], OF_A_CTE, SKELETON)
)
@pytest.mark.parametrize("exists", [False, True])
def test_a_local_task_leaves_the_keys_that_a_sensor_would_read(spark, tmp_path, sql, exists):
    """Also if it does not need them, as for a table without partitions."""
    if exists:
        spark.sql(
            "INSERT INTO needed.fact SELECT 1, ds, 'n' FROM VALUES ('d1'), ('d3'), ('d4') AS t(ds)"
        )
    report, path = prune(spark, job_of(sql), UPath(tmp_path) / "1.json"), UPath(tmp_path)
    descriptor = report.descriptor
    found = read_keys(path / "1.json", descriptor.query_digest, descriptor.digest)
    for only in ([], ["DS"]):
        if found.has_columns(only):
            assert list(found.required(only)) == required_partitions(spark, job_of(sql), only)
    assert found.notes or found.scans or sql == "SELECT 1"
    spark.sql("TRUNCATE TABLE needed.fact")
    for p in ("d1", "d3", "d4"):
        spark.sql(f"ALTER TABLE needed.fact DROP IF EXISTS PARTITION (ds = '{p}', region = 'n')")


@pytest.mark.parametrize(
    "job",
    [
        job_of(SQL.replace("needed.days d", "(SELECT raise_error('no') ds FROM needed.days) d")),
        job_of(SQL, max_keys=1),
    ],
    ids=["its query fails", "there are too many"],
)
def test_a_local_task_that_has_not_read_all_keys_leaves_none(spark, tmp_path, job):
    path = UPath(tmp_path) / "1.json"
    prune(spark, job, path)
    assert path.exists()
    assert not keys_path(path).exists()


def test_one_application_leaves_no_keys(spark, tmp_path):
    path = UPath(tmp_path) / "1.json"
    prune(spark, job_of(SQL), path, hand_over=False)
    assert not keys_path(path).exists()


def test_the_warning_about_an_old_switch_name_is_logged_once(spark, caplog):
    old = {"hive.optimize.mapjoin.python.functions": "true"}
    required_partitions(spark, Job(SQL, hive_conf=old))
    assert caplog.text.count("the argument python_functions replaces the setting") == 1
