"""Key indexes of Delta tables that Spark writes: they give the files in which Spark finds a key."""

from __future__ import annotations

from datetime import date
from urllib.parse import unquote

import pytest
from upath import UPath

pytest.importorskip("deltalake")  # environments of other versions do not have it

from pyspark.sql import DataFrame

from airflow_hive_opt.key_index.building import build
from airflow_hive_opt.key_index.checked_tables import CheckedDelta
from airflow_hive_opt.key_index.checker import problems_of_index
from airflow_hive_opt.key_index.delta import DeltaColumn
from airflow_hive_opt.key_index.delta_log import read_log
from airflow_hive_opt.key_index.indexed_column import NotIndexable
from airflow_hive_opt.key_index.lookup import files_holding
from airflow_hive_opt.key_index.manifest import read_index
from tests.lakes.session import needs_jvm

BY_NAME = "'delta.columnMapping.mode' = 'name'"
UPGRADE = f"{BY_NAME}, 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"


class Table:
    """A table in a folder, and the folder of its indexes."""

    def __init__(self, session, folder):
        self.session = session
        self.folder = folder / "t"
        self.root = UPath(folder / "indexes")
        self.name = f"delta.`{self.folder}`"

    def sql(self, text):
        return self.session.sql(text.replace("{t}", self.name))

    def column(self, name):
        return DeltaColumn(read_log("t", UPath(self.folder)), "t", name)

    def agrees(self, column, keys, exactly=True):
        """Compares the index with the files in which Spark finds the keys; gives what is left out.

        The name of a file is its own, whatever its folder is called.
        """
        of = self.column(column)
        left_out = build(self.root, of).left_out
        checked = CheckedDelta(UPath(self.folder))
        assert problems_of_index(checked, column, self.root) == []
        index = read_index(self.root, of.table_uuid, of.field_id)
        current = {file.path for file in of.files(None)}
        for key in keys:
            literal = f"DATE'{key}'" if isinstance(key, date) else repr(key)
            sql = f"SELECT DISTINCT _metadata.file_name FROM {{t}} WHERE `{column}` = {literal}"
            expected = {row[0] for row in self.sql(sql).collect()}
            found = files_holding(self.root, index, [key])
            read = {each for each in current if each in found.holding or each not in found.covered}
            given = {unquote(each.rpartition("/")[2]) for each in read}
            assert given == expected if exactly and not left_out else given >= expected
        return left_out


@pytest.fixture
def table(lake, tmp_path):
    return Table(lake, tmp_path)


KEYS = {
    "tiny": [7, -1, 99],
    "small": [7, -1, 400],
    "number": [7, -1, 400],
    "id": [2**40 + 7, 2**40, 3],
    "code": ["é7", "", "x"],
    "short": ["v7", "x"],
    "bought": [date(2024, 1, 8), date(2025, 1, 1)],
}


def create(table, properties="'a' = 'b'"):
    table.sql(
        "CREATE TABLE {t} (id bigint, tiny tinyint, small smallint, number int, code string, "
        "short varchar(9), fixed char(4), bought date, p int) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ({properties})"
    )
    table.sql(
        "INSERT INTO {t} SELECT id + 1099511627776, CAST(id % 97 - 1 AS tinyint), "
        "CAST(id % 97 - 1 AS smallint), CAST(id % 97 - 1 AS int), "
        "if(id = 5, '', concat('é', id % 150)), concat('v', id), 'a', "
        "date_add(DATE'2024-01-01', CAST(id % 80 AS int)), CAST(id % 9 AS int) FROM range(300)"
    )


def all_agree(table, exactly=True):
    for column, keys in KEYS.items():
        assert table.agrees(column, keys, exactly) == {}


def test_columns_of_each_type(table):
    create(table)
    all_agree(table)
    with pytest.raises(NotIndexable, match=r"has the type char\(4\)"):
        table.column("fixed")


@pytest.mark.parametrize("with_vectors", [False, True])
def test_changed_rows(table, with_vectors):
    create(table, f"'delta.enableDeletionVectors' = '{str(with_vectors).lower()}'")
    all_agree(table)
    table.sql("UPDATE {t} SET small = 400, code = 'x' WHERE small = 7")
    table.sql(f"DELETE FROM {{t}} WHERE id = {2**40}")
    table.sql(
        f"MERGE INTO {{t}} USING (SELECT 3L AS id UNION ALL SELECT {2**40 + 9}) s "
        f"ON {table.name}.id = s.id WHEN MATCHED THEN UPDATE SET bought = DATE'2025-01-01' "
        "WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 1)"
    )
    all_agree(table, exactly=not with_vectors)
    table.sql("OPTIMIZE {t}")
    all_agree(table)
    table.sql("RESTORE TABLE {t} TO VERSION AS OF 2")
    assert build(table.root, table.column("id")).new_files == 0
    all_agree(table, exactly=not with_vectors)


def test_columns_of_another_name_than_in_the_files(table):
    """``number`` is renamed, dropped and added again; ``id`` gets its name then."""
    create(table)
    all_agree(table)
    table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({UPGRADE})")
    assert build(table.root, table.column("number")).new_files == 0
    table.sql("ALTER TABLE {t} RENAME COLUMN number TO old_number")
    table.sql("INSERT INTO {t} (id, old_number, p) VALUES (3, 7, 1)")
    assert build(table.root, table.column("old_number")).new_files == 1
    assert table.agrees("old_number", KEYS["number"]) == {}
    table.sql("ALTER TABLE {t} DROP COLUMN old_number")
    table.sql("ALTER TABLE {t} ADD COLUMN number int")
    assert table.agrees("number", KEYS["number"]) == {}
    table.sql("INSERT INTO {t} (id, number, p) VALUES (4, 7, 2)")
    assert table.agrees("number", KEYS["number"]) == {}
    table.sql("ALTER TABLE {t} DROP COLUMN number")
    table.sql("ALTER TABLE {t} RENAME COLUMN id TO number")
    assert table.agrees("number", [*KEYS["id"], 7]) == {}


def test_a_table_whose_columns_never_had_their_names_in_the_files(table):
    create(table, BY_NAME)
    all_agree(table)
    assert table.column("id").field_id.startswith("col-")
    table.sql("ALTER TABLE {t} RENAME COLUMN id TO `the id`")
    assert table.agrees("the id", KEYS["id"]) == {}


def test_columns_that_are_found_by_ids_are_refused(table):
    create(table, "'delta.columnMapping.mode' = 'id'")
    with pytest.raises(NotIndexable, match="mode = 'id'"):
        table.column("id")


VALUES = ("a b", "a%20b", "ü:x", "a+b", "x=y", "q?z", "h#h", "a/b", "{c}", "a%b", "", 'a"b', "~")


@needs_jvm
@pytest.mark.parametrize("properties", ["'a' = 'b'", BY_NAME])
def test_partition_values_with_special_characters(table, properties):
    """A path is that of Spark's list of files, decoded."""
    table.sql(
        "CREATE TABLE {t} (id bigint, p string) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ({properties})"
    )
    rows = ", ".join(f"({at}, '{value}'), (99, '{value}')" for at, value in enumerate(VALUES))
    table.sql(f"INSERT INTO {{t}} VALUES {rows}")
    assert table.agrees("id", [*range(len(VALUES)), 99]) == {}
    session = table.session
    log = session._jvm.org.apache.spark.sql.delta.DeltaLog
    snapshot = log.forTable(session._jsparkSession, str(table.folder)).unsafeVolatileSnapshot()
    listed = DataFrame(snapshot.allFiles().toDF(), session).select("path").collect()
    assert {file.path for file in table.column("id").files(None)} == {
        unquote(row[0]) for row in listed
    }


def test_dates_of_another_calendar_are_left_out(table):
    """Each key gives the files that Spark's settings for reading may find it in."""
    session, written = table.session, "spark.sql.parquet.datetimeRebaseModeInWrite"
    table.sql("CREATE TABLE {t} (due date, p int) USING delta PARTITIONED BY (p)")
    for at, mode in enumerate(("LEGACY", "CORRECTED")):
        session.conf.set(written, mode)
        try:
            table.sql(f"INSERT INTO {{t}} VALUES (DATE'1500-01-01', {at}), (DATE'2024-01-01', 9)")
        finally:
            session.conf.unset(written)
    keys = [date(1500, 1, 1), date(1500, 1, 10), date(2024, 1, 1), date(2000, 1, 1)]
    left_out = table.agrees("due", keys)
    assert left_out == {
        "its dates are of the Julian calendar": 2,
        "it has values that are dates before 1582-10-15 or after 9999-12-31": 1,
    }


def test_a_shallow_clone_covers_its_own_files_alone(table, tmp_path):
    create(table)
    clone = Table(table.session, tmp_path / "clone")
    clone.sql(f"CREATE TABLE {{t}} SHALLOW CLONE {table.name}")
    clone.sql("INSERT INTO {t} (id, p) VALUES (3, 1)")
    assert clone.column("id").table_uuid != table.column("id").table_uuid
    built = build(clone.root, clone.column("id"))
    assert (list(built.left_out), built.files) == (["it is outside the table's folder"], 1)


def test_a_log_with_checkpoints_of_another_kind(table):
    create(table, "'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '3'")
    for at in range(7):
        table.sql(f"INSERT INTO {{t}} (id, p) VALUES ({at}, 1)")
    log = table.folder / "_delta_log"
    assert list(log.glob("*.checkpoint.*-*"))
    assert table.agrees("id", KEYS["id"]) == {}
    for version in range(3):
        (log / f"{version:020}.json").unlink()
    assert build(table.root, table.column("id"), rebuild=True).left_out == {}
    assert table.agrees("id", KEYS["id"]) == {}
