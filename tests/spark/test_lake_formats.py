"""Delta and Hudi tables, as Spark's catalog describes them; the runtimes are not installed.

So no statement runs on such a table here. The texts that would run are compared, and a SELECT runs
on a twin of the table.
"""

from __future__ import annotations

import pytest
from pyspark.sql.types import DateType, IntegerType, StructType
from upath import UPath

from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.documents.report import Report
from airflow_hive_opt.metastores.hive_tables import UNKNOWN_SIZE
from airflow_hive_opt.restriction.restrict import restrict
from airflow_hive_opt.spark.catalog.lakes import tables
from airflow_hive_opt.spark.catalog.lakes.entries import identity_columns
from airflow_hive_opt.spark.catalog.lakes.place import Place, load
from airflow_hive_opt.spark.catalog.lakes.tables import LakeTables
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from tests.services.lake_entries import add_entry
from tests.spark.stages import prune

FORMATS = ("hudi",)
MERGE = (
    "MERGE INTO of_hudi o USING changed c ON o.id = c.id AND o.day = c.day "
    "WHEN MATCHED THEN UPDATE SET v = c.v WHEN NOT MATCHED THEN INSERT *"
)
LIST = "(DATE'2026-01-05', DATE'2026-01-07')"
every_format = pytest.mark.parametrize("provider", FORMATS)


@pytest.fixture(scope="module")
def entries(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS lake_formats")
    spark.catalog.setCurrentDatabase("lake_formats")
    spark.sql("CREATE TABLE twin (id INT, v INT, day DATE) USING parquet PARTITIONED BY (day)")
    spark.sql(
        "INSERT INTO twin SELECT id, id % 3, date_add(DATE'2026-01-01', cast(id % 9 AS INT)) "
        "FROM range(50)"
    )
    spark.sql("CREATE TABLE bare (id INT, v INT, day DATE) USING parquet")
    spark.sql("ANALYZE TABLE bare COMPUTE STATISTICS")  # else Spark would have to read the files
    for provider in FORMATS:
        add_entry(spark, "lake_formats.twin", f"lake_formats.of_{provider}", provider.title())
    spark.sql(
        "CREATE TABLE changed AS SELECT * FROM VALUES (4, 70, DATE'2026-01-05'), "
        "(6, 71, DATE'2026-01-07'), (7, 72, NULL) AS t(id, v, day)"
    )
    yield spark
    spark.sql("DROP DATABASE lake_formats CASCADE")
    spark.catalog.setCurrentDatabase("default")


def pruned(session, sql: str, path, asked: str = "") -> Report:
    job = Job(sql, switches={"untested_formats": asked}, show_rows=1000)
    return prune(session, job, UPath(path) / "descriptor.json")


def text(sql: str, report: Report) -> str:
    found = report.descriptor
    return restrict(sql, found.targets, {}, found.row_filters, found.changes)


def reasons(report: Report) -> dict[str, str]:
    return {found.scan.alias: found.reason for found in report.descriptor.decisions}


@every_format
def test_partitions_in_the_metastore_are_ignored(entries, provider):
    """The entry says that the metastore has them, but the format's own list may have more."""
    external = entries._jsparkSession.sharedState().externalCatalog()
    assert external.getTable("lake_formats", f"of_{provider}").tracksPartitionsInCatalog()
    table = SparkCatalog(entries).table(f"lake_formats.of_{provider}")
    assert table.partition_columns == ()
    assert [column.name for column in table.all_columns] == ["id", "v", "day"]
    assert (table.provider, table.clustered_by) == (provider, ("day",))
    assert table.total_bytes == UNKNOWN_SIZE


@every_format
def test_off_by_default(entries, tmp_path, provider):
    sql = f"SELECT o.id FROM of_{provider} o JOIN changed c ON o.day = c.day"
    report = pruned(entries, sql, tmp_path)
    assert reasons(report) == {"o": "FORMAT_NOT_TESTED"}
    assert text(sql, report) == sql
    merge = MERGE
    report = pruned(entries, merge, tmp_path)
    (decision,) = report.descriptor.decisions
    assert decision.reason == "PASSED_THROUGH"
    assert "if untested_formats names it" in decision.message
    assert text(merge, report) == merge


@every_format
def test_the_text_of_a_join(entries, tmp_path, provider):
    sql = f"SELECT o.id, c.v FROM of_{provider} o JOIN changed c ON o.day = c.day"
    report = pruned(entries, sql, tmp_path, provider)
    assert reasons(report) == {"o": "RESTRICTED"}
    found = text(sql, report)
    inner = f"of_{provider} AS `o` WHERE `o`.`day` IN {LIST}"
    assert found == sql.replace(f"of_{provider}", f"(SELECT * FROM {inner})")
    # on a table of the same columns and rows
    plain, restricted = (each.replace(f"of_{provider}", "twin") for each in (sql, found))
    rows = sorted(entries.sql(restricted).collect())
    assert rows == sorted(entries.sql(plain).collect())
    assert rows


@pytest.mark.parametrize(
    ("hand_over", "reason"), [(False, "RESTRICTED"), (True, "NOT_HANDED_OVER")]
)
def test_keys_from_partition_names_are_not_handed_over(entries, tmp_path, hand_over, reason):
    """Partitions of the other table that are added before the map join would be more keys."""
    sql = "SELECT o.id FROM of_hudi o JOIN twin t ON o.day = t.day"
    job = Job(sql, switches={"untested_formats": "hudi"})
    report = prune(entries, job, UPath(tmp_path) / "1.json", hand_over=hand_over)
    assert reasons(report)["o"] == reason
    assert bool(report.descriptor.row_filters) == (not hand_over)


def test_the_guard_is_what_delta_accepts(entries):
    """Delta rejects a condition of MERGE that Spark does not call deterministic, or a subquery."""
    found = entries.sql("SELECT 1 FROM changed WHERE IF(v = 0, raise_error('changed'), TRUE)")
    condition = found._jdf.queryExecution().analyzed().children().head().condition()
    assert condition.deterministic()
    assert "raise_error" in condition.sql()


def test_hudis_merge_stays_as_it_is(entries, tmp_path):
    merge = MERGE
    report = pruned(entries, merge, tmp_path, "hudi")
    (decision,) = report.descriptor.decisions
    assert "Hudi accepts only equalities" in decision.message
    assert text(merge, report) == merge


def test_the_text_of_hudis_delete(entries, tmp_path):
    sql = "DELETE FROM of_hudi WHERE day IN (SELECT day FROM changed WHERE v > 70)"
    report = pruned(entries, sql, tmp_path, "hudi")
    start, condition = sql.split("WHERE ", 1)
    key = "DATE'2026-01-07'"
    assert text(sql, report) == f"{start}WHERE ({condition}) AND (`of_hudi`.`day` IN ({key}))"


def test_the_hive_table_of_the_same_join_is_pruned(entries, tmp_path):
    sql = "SELECT 1 FROM twin t JOIN of_hudi h ON t.id = h.id JOIN changed c ON t.day = c.day"
    assert reasons(pruned(entries, sql, tmp_path))["t"] == "PRUNED"


class DeltaTableStandIn:
    """Stands in for the JVM's object that Delta's catalog loads, with the methods used here."""

    kind = "org.apache.spark.sql.delta.catalog.DeltaTableV2"

    def __init__(self, *partitioned: tuple[str, tuple[str, ...]]) -> None:
        self._transforms = [_TransformStandIn(*each) for each in partitioned]

    def getClass(self):  # noqa: N802 - the JVM's name
        return self

    def getName(self) -> str:  # noqa: N802
        return self.kind

    def schema(self) -> StructType:
        return StructType().add("day", DateType()).add("ID", IntegerType())

    def properties(self) -> dict[str, str]:
        return {"location": "file:/orders"}

    def partitioning(self) -> list:
        return self._transforms


class HudiTableStandIn(DeltaTableStandIn):
    """Stands in for the JVM's object that Hudi's catalog loads for schema evolution."""

    kind = "org.apache.spark.sql.hudi.catalog.HoodieInternalV2Table"


class _TransformStandIn:
    """Stands in for the JVM's ``Transform``, and for the reference to its column."""

    def __init__(self, kind: str, names: tuple[str, ...]) -> None:
        self._kind, self._names = kind, names

    def name(self) -> str:
        return self._kind

    def references(self) -> list:
        return [self]

    def fieldNames(self) -> tuple[str, ...]:  # noqa: N802
        return self._names


@pytest.mark.parametrize(("stand_in", "provider"), [(HudiTableStandIn, "hudi")])
def test_tables_of_another_catalog(entries, monkeypatch, stand_in, provider):
    found = stand_in(("identity", ("Day",)), ("identity", ("s", "day")), ("bucket", ("id",)))
    monkeypatch.setattr(tables, "load", lambda session, place: found)
    table = LakeTables(entries).table(Place("unity", ("shop",), "orders"))
    assert (table.name, table.provider) == ("unity.shop.orders", provider)
    assert [(column.name, column.type) for column in table.columns] == [
        ("day", "date"),
        ("id", "int"),
    ]
    assert table.clustered_by == ("day",)
    assert (table.total_bytes, table.location) == (UNKNOWN_SIZE, "file:/orders")


def test_sparks_own_transforms(entries):
    """The stand-ins answer as Spark's objects do."""
    place = Place("spark_catalog", ("lake_formats",), "twin")
    assert identity_columns(load(entries, place)) == ("day",)
