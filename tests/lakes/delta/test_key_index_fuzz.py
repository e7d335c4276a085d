"""Random queries by a column with a key index, while the Delta table changes behind the index.

Each query runs with the index and plain on the same table. ``make fuzz-key-index-delta N=1000
SEED=7`` tests more of them.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from upath import UPath

from airflow_hive_opt.key_index.checked_tables import CheckedDelta
from airflow_hive_opt.key_index.checker import NotCheckedError, problems_of_descriptor
from tests.fuzz.findings import SEED, case, count_of, differing, repeat, report
from tests.lakes.databases import drop_database
from tests.lakes.delta.indexes import build_index, place_of
from tests.lakes.keyed_statements import IDS, KEYS, condition_on, keys_of
from tests.lakes.random_statements import ANY_COLUMN, SMALL
from tests.lakes.runs import rows_of, run, run_apart
from tests.lakes.session import another_session

QUERIES = count_of("FUZZ_KEY_INDEX", 20)
TABLE = "kif.ours"
DAYS, EACH_TABLE = 12, 12
_COLUMNS = "id bigint, code string, at date, v int, day date, part string, ts timestamp"
_LAYOUTS = ("day", "day, part", "part", "part, ts", "v, day", "ts")
_PROPERTIES = (
    "'delta.enableDeletionVectors' = 'true'",
    "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', "
    "'delta.minWriterVersion' = '5'",
    "'delta.checkpointInterval' = '3'",
)


@pytest.fixture(scope="module")
def session(lake):
    session = another_session(lake)
    for name, value in SMALL.items():
        session.conf.set(name, value)
    session.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    session.sql("CREATE DATABASE kif")
    session.sql("CREATE TABLE kif.keys (id bigint, code string, at date, v int) USING parquet")
    yield session
    drop_database(session, "kif")


class Table:
    """The table with indexes of some of its columns."""

    def __init__(self, session, root: UPath, rng: random.Random) -> None:
        self._session, self._root, self._rng = session, root, rng
        self.log: list[str] = []
        self.indexed = rng.sample(KEYS, rng.choice([1, 1, 2]))
        self._make()
        self.build()

    def _make(self) -> None:
        self.layout, rng = self._rng.choice(_LAYOUTS), self._rng
        chosen = rng.sample(_PROPERTIES, rng.randint(0, 3))
        self.is_mapped = any("columnMapping" in each for each in chosen)
        properties = f"TBLPROPERTIES ({', '.join(chosen)})" if chosen else ""
        self._run(f"DROP TABLE IF EXISTS {TABLE}")
        self._run(
            f"CREATE TABLE {TABLE} ({_COLUMNS}) USING delta PARTITIONED BY ({self.layout}) "
            f"{properties}"
        )
        self._insert(rng.randint(60, 150))
        self._insert(rng.randint(1, 20))

    def build(self) -> None:
        """Brings the indexes up to date."""
        for column in self.indexed:
            build_index(self._session, self._root, f"spark_catalog.{TABLE}", column)
        self.log.append("build")

    def change(self) -> None:
        """Changes the table behind the index."""
        rng = self._rng
        kind = rng.choice(
            ["insert"] * 3
            + ["update", "delete", "delete day", "overwrite", "merge", "optimize", "restore"]
            + ["vacuum", "rename", "replace", "make again", "damage", "build", "build"]
        )
        if kind == "insert":
            self._insert(rng.randint(1, 15))
        elif kind == "update":
            column = rng.choice(["id", "day", "part", "code", "ts"])
            value = {"id": "id + 1", "code": "concat('k', id + 2)"}.get(
                column, self._literal(column)
            )
            self._run(f"UPDATE {TABLE} SET {column} = {value} WHERE v = {rng.randint(0, 4)}")
        elif kind == "delete":
            self._run(f"DELETE FROM {TABLE} WHERE id % 7 = {rng.randint(0, 6)}")
        elif kind == "delete day":
            self._run(f"DELETE FROM {TABLE} WHERE day = {self._literal('day')}")
        elif kind == "overwrite":
            self._insert(rng.randint(10, 30), f"OVERWRITE {TABLE}")
        elif kind == "merge":
            self._run(
                f"MERGE INTO {TABLE} t USING (SELECT DISTINCT id FROM kif.keys) k ON t.id = k.id "
                "WHEN MATCHED AND t.v > 2 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 4 "
                "WHEN NOT MATCHED THEN INSERT (id, part) VALUES (k.id, 'a')"
            )
        elif kind == "optimize":
            self._run(f"OPTIMIZE {TABLE}")
        elif kind == "vacuum":
            self._run(f"VACUUM {TABLE} RETAIN 0 HOURS")
        elif kind == "restore":
            versions = self._session.sql(f"DESCRIBE HISTORY {TABLE}").collect()
            version = rng.choice(versions)["version"]
            self._run(f"RESTORE TABLE {TABLE} TO VERSION AS OF {version}")
        elif kind == "rename" and self.is_mapped:
            self._run(f"ALTER TABLE {TABLE} RENAME COLUMN v TO w")
            self._run(f"ALTER TABLE {TABLE} RENAME COLUMN w TO v")
        elif kind == "replace":
            self._run(
                f"CREATE OR REPLACE TABLE {TABLE} USING delta PARTITIONED BY ({self.layout}) AS "
                f"SELECT * FROM {TABLE} WHERE v < 4 OR v IS NULL"
            )
        elif kind == "make again":
            self._make()
        elif kind == "damage":
            self._damage()
        else:
            self.build()

    def _run(self, sql: str) -> None:
        """Runs a statement; Delta refuses some, such as the way back before a new layout."""
        try:
            self._session.sql(sql)
        except (PySparkException, Py4JJavaError) as error:
            sql = f"{sql}: {str(error)[:200]}"
        self.log.append(sql)

    def _insert(self, count: int, into: str = f"INTO {TABLE}") -> None:
        rows = ", ".join(self._row() for _ in range(count))
        self._run(f"INSERT {into} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")

    def _row(self) -> str:
        rng = self._rng
        key = rng.randint(0, IDS)
        found = [
            f"{key}L",
            f"'k{rng.choice([key, rng.randint(0, IDS)])}'",
            f"date_add(DATE'2020-01-01', {rng.choice([key, rng.randint(0, IDS)])})",
            str(rng.randint(0, 4)),
            *(self._literal(name) for name in ("day", "part", "ts")),
        ]
        types = [each.partition(" ")[2] for each in _COLUMNS.split(", ")]
        values = ["NULL" if rng.random() < 0.05 else each for each in found]
        return f"({', '.join(f'CAST({v} AS {t})' for v, t in zip(values, types, strict=True))})"

    def _literal(self, column: str) -> str:
        rng = self._rng
        if rng.random() < 0.1:
            return "NULL"
        if column == "part":
            return rng.choice(["'a'", "'B'", "''", "'ä ''x%20/='"])
        if column == "ts":
            hour = rng.choice([-30 * 24, -1, 0, 1, 475_000]) + rng.randint(0, 3)
            return f"timestamp_micros({hour * 3_600_000_000 + rng.choice([0, 1, -1])})"
        return f"date_add(DATE'2024-01-01', {rng.randint(0, DAYS)})"

    def _damage(self) -> None:
        self.build()
        paths = sorted(each for each in self._root.rglob("*") if each.is_file())
        path = self._rng.choice(paths)
        data = bytearray(path.read_bytes())
        data[self._rng.randrange(len(data))] ^= 1
        path.write_bytes(bytes(data))
        self.log.append(f"damage {path.name}")


def query(rng: random.Random, columns: list[str]) -> str:
    """A query by keys of ``columns``, most of which have an index."""
    name, condition = condition_on(rng, columns)
    source = rng.choice(["kif.keys", "(SELECT * FROM kif.keys WHERE v >= 0)"])
    return rng.choice(
        [
            f"SELECT t.*, k.v AS kv FROM {TABLE} t JOIN {source} k ON {condition}",
            f"SELECT k.id, t.day, t.v FROM {source} k LEFT JOIN {TABLE} t ON {condition}",
            f"SELECT * FROM {TABLE} t WHERE {name} IN (SELECT {name} FROM {source})",
            f"SELECT * FROM {TABLE} t WHERE EXISTS (SELECT 1 FROM {source} k WHERE {condition})",
            f"SELECT t.id, u.v, u.day FROM {TABLE} t JOIN {source} k ON {condition} "
            f"JOIN {TABLE} u ON u.id = t.id",
            f"SELECT count(*), sum(v) FROM (SELECT t.v FROM {TABLE} t JOIN {source} k "
            f"ON {condition} UNION ALL SELECT v FROM {TABLE})",
        ]
    )


def checked(session, found, path) -> list[str] | None:
    """What the independent check of the descriptor objects to; ``None`` if it can't check."""
    used = {use.column for use in found.report.descriptor.index_uses if use.code == "USED"}
    if not used:
        return []
    table = CheckedDelta(place_of(session, TABLE))
    file = UPath(path) / "descriptor.json"
    try:
        return [each for column in used for each in problems_of_descriptor(table, column, file)]
    except NotCheckedError as why:  # keys without a gap are one range
        assert "does not list the keys" in str(why)
        return None


def test_random_queries_behind_an_index_have_plain_sparks_rows(session, tmp_path):
    rng = random.Random(SEED)
    root = UPath(tmp_path / "indexes")
    root.mkdir()
    wrong, codes, refused, left = [], Counter(), 0, 0
    for number in range(QUERIES):
        if not left:
            table, left = Table(session, root, rng), EACH_TABLE
        left -= 1
        for _ in range(rng.choice([0, 1, 1, 2])):
            table.change()
        rows = keys_of(rng, 1)
        session.sql(f"INSERT OVERWRITE kif.keys VALUES {rows}")
        sql = query(rng, table.indexed)
        options = {"settings": ANY_COLUMN} if rng.random() < 0.3 else {}
        runs, between = (run_apart, [table.change]) if rng.random() < 0.3 else (run, [])
        if f"JOIN {TABLE} u" in sql:  # without an index, it is a small table that gives keys
            between = []  # see "Small tables that change" of the guarantees
        failed, found, plain, problems = {}, None, [], []
        with case(f"query {number}", statement=sql) as finding:
            try:
                found = runs(session, sql, tmp_path, *between, index_path=str(root), **options)
                codes.update(str(use.code) for use in found.report.descriptor.index_uses)
            except (PySparkException, Py4JJavaError) as error:
                failed["ours"] = str(error)[:500]
            try:
                plain = rows_of(session, sql)
            except (PySparkException, Py4JJavaError) as error:
                failed["plain"] = str(error)[:500]
            if found is not None and not between:
                problems = checked(session, found, tmp_path)
                codes["not checked"] += problems is None
        refused += bool(failed)
        given = [] if found is None else found.rows
        if len(failed) == 1 or (not failed and given != plain) or problems:
            said = {"ran": found and found.statement, "failed": failed, "before": table.log}
            wrong.append(finding(keys=rows, problems=problems, **said, **differing(plain, given)))
            left = 0
            print(f"query {number} is wrong: {sql}", flush=True)
        if number % 100 == 99:
            print(f"{number + 1} queries, {len(wrong)} wrong", flush=True)
        table.log.append(sql)
    counted = f"{repeat(FUZZ_KEY_INDEX=QUERIES)}: {refused} refused, {dict(codes)}"
    print(f"{counted}, {len(wrong)} wrong")
    assert not wrong, report(wrong, FUZZ_KEY_INDEX=QUERIES)
    assert codes["USED"] >= QUERIES / 5, counted
    assert refused <= QUERIES / 4, counted
