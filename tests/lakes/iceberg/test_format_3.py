"""Tables of format version 3: deletion vectors, defaults, row lineage and variants."""

from __future__ import annotations

import pytest

from airflow_hive_opt.metastores.iceberg.catalog import IcebergTables
from tests.lakes.jars import SPARK
from tests.lakes.runs import rows_of, run, run_apart
from tests.spark.stages import job_of, required_partitions

MERGE = (
    "MERGE INTO {0} t USING v3_changed c ON t.id = c.id AND t.day = c.day "
    "WHEN MATCHED AND c.v < 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = c.v "
    "WHEN NOT MATCHED THEN INSERT (id, day, v) VALUES (c.id, c.day, c.v)"
)
JOIN = "SELECT b.id, b.v FROM {0} b JOIN v3_changed c ON b.day = c.day"


@pytest.fixture(scope="module")
def changed(lake):
    lake.sql("CREATE NAMESPACE lake.v3")
    lake.sql(
        "CREATE TABLE v3_changed AS SELECT * FROM VALUES (2L, DATE'2024-01-03', 7L), "
        "(3L, DATE'2024-01-04', -1L), (500L, DATE'2024-01-05', 8L) AS t(id, day, v)"
    )
    yield lake
    lake.sql("DROP TABLE v3_changed")


@pytest.fixture
def make(changed):
    """Makes a table of 20 days; ``columns`` are further ones, as expressions."""
    made = []

    def make(name, mode="merge-on-read", columns=""):
        table = f"lake.v3.{name}"
        made.append(table)
        modes = ", ".join(f"'write.{kind}.mode' = '{mode}'" for kind in ("merge", "delete"))
        changed.sql(
            f"CREATE TABLE {table} USING iceberg PARTITIONED BY (day) "
            f"TBLPROPERTIES ('format-version' = '3', {modes}) AS SELECT id, "
            f"date_add(DATE'2024-01-01', cast(id % 20 AS int)) AS day, 0L AS v {columns} "
            "FROM range(100)"
        )
        return table

    yield make
    for table in made:
        changed.sql(f"DROP TABLE {table}")


def same(session, plain, ours, columns="*"):
    rows = rows_of(session, f"SELECT {columns} FROM {ours}")
    assert rows == rows_of(session, f"SELECT {columns} FROM {plain}")
    return rows


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_changes_and_reads_with_deletion_vectors_are_plain_sparks(changed, make, tmp_path, mode):
    plain, ours = make("plain", mode), make("ours", mode)
    for sql in (MERGE, "DELETE FROM {0} WHERE day IN (SELECT day FROM v3_changed WHERE v = 8)"):
        changed.sql(sql.format(plain))
        found = run(changed, sql.format(ours), tmp_path)
        assert "RESTRICTED" in found.reasons.values()
        # a DELETE of whole files reads none of them
        assert sum(read.files for read in found.report.reads if read.table == ours) <= 8
        same(changed, plain, ours)
    vectors = changed.sql(f"SELECT file_format FROM {ours}.delete_files").collect()
    assert {row[0] for row in vectors} == ({"PUFFIN"} if mode == "merge-on-read" else set())
    sql = JOIN.format(ours)
    found = run(changed, sql, tmp_path)
    assert found.rows == rows_of(changed, sql)
    assert found.reasons == {"b": "RESTRICTED"}


@pytest.fixture
def waited_for(changed):
    """Tables of the metastore, from which PyIceberg reads which days there are."""
    changed.sql("CREATE NAMESPACE hms.v3")
    yield "hms.v3.waited"
    changed.sql("DROP TABLE IF EXISTS hms.v3.waited PURGE")
    changed.sql("DROP NAMESPACE hms.v3")


@pytest.mark.parametrize("version", [2, 3])
def test_the_sensor_reads_tables_of_format_version_3(
    changed, waited_for, metastore_service, version
):
    """Files whose rows are all deleted by vectors still count, and files of other days do not."""
    changed.sql(
        f"CREATE TABLE {waited_for} USING iceberg PARTITIONED BY (day) TBLPROPERTIES "
        f"('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read') AS SELECT id, "
        f"date_add(DATE'2024-01-01', cast(id % 3 AS int)) AS day, 0L AS v FROM range(9)"
    )
    changed.sql(f"DELETE FROM {waited_for} WHERE id IN (2, 5)")
    (required,) = required_partitions(changed, job_of(JOIN.format(waited_for)))
    absent = IcebergTables({"type": "hive", "uri": metastore_service.uri}).absent(required)
    assert [row[0].day for row in required.tuples] == [3, 4, 5]
    assert [row[0].day for row in absent.tuples] == [4, 5]


def test_row_lineage_is_kept_as_by_plain_spark(changed, make, tmp_path):
    """An updated row keeps its ID, and rows that are not touched keep when they were written."""
    plain, ours = make("plain"), make("ours")
    changed.sql(MERGE.format(plain))
    run(changed, MERGE.format(ours), tmp_path)
    columns = "id, v, _row_id, _last_updated_sequence_number"
    rows = same(changed, plain, f"(SELECT * FROM {ours})", "id, v")
    lineage = rows_of(changed, f"SELECT {columns} FROM {ours} WHERE id < 500")
    assert lineage == rows_of(changed, f"SELECT {columns} FROM {plain} WHERE id < 500")
    assert {row[3] for row in lineage if row[0] != 2} == {1}
    assert (len(rows), len({row[2] for row in lineage})) == (100, 99)
    sql = f"SELECT b.id, b._row_id FROM {ours} b JOIN v3_changed c ON b.day = c.day"
    assert run(changed, sql, tmp_path).rows == rows_of(changed, sql)


def loaded(session, table):
    return session._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        session._jsparkSession, table
    )


@pytest.fixture
def with_default(changed, make):
    """A table of which the files that were written before lack a column with a default."""
    table = make("ours")
    jvm = changed._jvm.org.apache.iceberg
    text = jvm.types.Types.StringType.get()
    update = loaded(changed, table).updateSchema()
    update.addColumn("region", text, None, jvm.expressions.Literal.of("eu")).commit()
    changed.sql(f"REFRESH TABLE {table}")
    changed.sql(f"INSERT INTO {table} VALUES (900, DATE'2024-01-03', 1, 'us')")
    return table


LOSES_ROWS = SPARK == "4.0"  # its last runtime is 1.11
BY_REGION = "SELECT b.id, b.region FROM {} b JOIN (SELECT '{}' AS region) k ON b.region = k.region"


@pytest.mark.skipif(LOSES_ROWS, reason="Iceberg 1.11 itself loses rows")
@pytest.mark.parametrize("layout", ["WRITE ORDERED BY region", "ADD PARTITION FIELD region"])
def test_keys_that_equal_a_default_find_rows_of_older_files(
    changed, with_default, tmp_path, layout
):
    """Keys that equal the default must find the rows of files that were written before."""
    changed.sql(f"ALTER TABLE {with_default} {layout}")
    changed.sql(f"INSERT INTO {with_default} VALUES (901, DATE'2024-01-03', 1, 'eu')")
    for wanted, count in (("eu", 101), ("us", 1)):
        sql = BY_REGION.format(with_default, wanted)
        found = run(changed, sql, tmp_path)
        assert found.rows == rows_of(changed, sql)
        assert (found.reasons, len(found.rows)) == ({"b": "RESTRICTED"}, count)


@pytest.mark.skipif(not LOSES_ROWS, reason="conditions lose no rows")
@pytest.mark.parametrize("runs", [run, run_apart])
def test_a_statement_passes_through_if_the_runtime_loses_rows_with_defaults(
    changed, with_default, tmp_path, runs
):
    """A condition loses rows there, so no condition is added, and no keys are read."""
    assert changed.sql(f"SELECT 1 FROM {with_default} WHERE region = 'eu'").count() == 0
    for sql in (BY_REGION.format(with_default, "us"), JOIN.format(with_default)):
        found = runs(changed, sql, tmp_path)
        assert found.rows == rows_of(changed, sql)
        assert (found.statement, found.reasons) == (sql, {"the statement": "PASSED_THROUGH"})


@pytest.mark.skipif(SPARK == "3.5", reason="Spark 3.5 has no variants")
def test_tables_with_variant_columns_are_merged_and_restricted(changed, make, tmp_path):
    columns = ", parse_json(concat('{\"n\": ', id, '}')) AS doc"
    plain, ours = make("plain", columns=columns), make("ours", columns=columns)
    changed.sql(MERGE.format(plain))
    found = run(changed, MERGE.format(ours), tmp_path)
    assert found.reasons == {"t": "RESTRICTED"}
    same(changed, plain, ours, "id, day, v, to_json(doc)")
    sql = JOIN.format(ours).replace("b.v", "to_json(b.doc)")
    found = run(changed, sql, tmp_path)
    assert found.rows == rows_of(changed, sql)
    assert found.reasons == {"b": "RESTRICTED"}
