"""Random statements by a column with a key index, while the table changes behind the index.

Each statement runs with the index on one table and plain on an equal one. ``make fuzz-key-index
N=1000 SEED=7`` tests more of them.
"""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from upath import UPath

from airflow_hive_opt.key_index.checker import problems_of_descriptor
from airflow_hive_opt.key_index.manifest import folder_of
from tests.fuzz.findings import SEED, case, count_of, differing, repeat, report
from tests.lakes.iceberg.indexes import build_index, static_table
from tests.lakes.keyed_statements import IDS, KEYS, condition_on, keys_of
from tests.lakes.random_statements import ANY_COLUMN, SMALL
from tests.lakes.runs import rows_of, run, run_apart
from tests.lakes.session import another_session, needs_jvm

pytestmark = needs_jvm
STATEMENTS = count_of("FUZZ_KEY_INDEX", 30)
DAYS, EACH_TABLE = 12, 15
_COLUMNS = "id bigint, code string, at date, v int, day date, part string, ts timestamp"
_LAYOUTS = (
    *("day", "day, part", "day, bucket(3, id)", "part, months(at)"),
    *("days(day)", "months(ts), part", "hours(ts)", "days(ts), bucket(3, id)", "years(at)"),
)
_MODES = ("copy-on-write", "merge-on-read")


@pytest.fixture(scope="module")
def session(lake):
    session = another_session(lake)
    for name, value in SMALL.items():
        session.conf.set(name, value)
    session.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    session.sql("CREATE NAMESPACE lake.kif")
    session.sql("CREATE TABLE lake.kif.keys (id bigint, code string, at date, v int) USING iceberg")
    session.sql("INSERT INTO lake.kif.keys (id) VALUES (0)")
    return session


class Tables:
    """Two equal tables: ``ours`` with indexes, and ``plain``; each change is made to both."""

    def __init__(self, session, root: UPath, rng: random.Random) -> None:
        self._session, self._root, self._rng = session, root, rng
        self.log: list[str] = []
        self._damaged: UPath | None = None
        self._moments: list[dict[str, int]] = []
        self._added = rng.randrange(1 << 40)
        layout, mode = rng.choice(_LAYOUTS), rng.choice(_MODES)
        self._layout = layout.split(", ")
        properties = ", ".join(
            f"'write.{kind}.mode' = '{mode}'" for kind in ("merge", "update", "delete")
        )
        for name in ("ours", "plain"):
            session.sql(f"DROP TABLE IF EXISTS lake.kif.{name} PURGE")
            session.sql(
                f"CREATE TABLE lake.kif.{name} ({_COLUMNS}) USING iceberg "
                f"PARTITIONED BY ({layout}) TBLPROPERTIES ('format-version' = '2', {properties})"
            )
        self.indexed = rng.sample(KEYS, rng.choice([1, 1, 2]))
        self.log.append(f"{layout}, {mode}, indexes on {self.indexed}")
        self._insert(rng.randint(60, 150))
        self._insert(rng.randint(1, 20))
        self.build()

    def build(self) -> None:
        """Brings the indexes up to date."""
        for column in self.indexed:
            if self._damaged is not None:
                for path in self._damaged.iterdir():
                    path.unlink()
                self._damaged = None
            build_index(self._session, self._root, "lake.kif.ours", column)
        self.log.append("build")

    def change(self) -> None:
        """Changes both tables behind the index."""
        self._remember()
        if self._damaged is not None:  # one statement has met it
            self.build()
            return
        rng = self._rng
        kind = rng.choice(
            ["insert"] * 3
            + ["update", "delete", "delete day", "compact", "roll back", "damage"]
            + ["lay out", "rename", "add files", "map names", "build", "build"]
        )
        if kind == "insert":
            self._insert(rng.randint(1, 15))
        elif kind == "update":
            column = rng.choice(["id", "day", "part", "code", "ts"])
            value = {"id": "id + 1", "code": "concat('k', id + 2)"}.get(
                column, self._literal(column)
            )
            self._both(f"UPDATE {{t}} SET {column} = {value} WHERE v = {rng.randint(0, 4)}")
        elif kind == "delete":
            self._both(f"DELETE FROM {{t}} WHERE id % 7 = {rng.randint(0, 6)}")
        elif kind == "delete day":
            self._both(f"DELETE FROM {{t}} WHERE day = {self._literal('day')}")
        elif kind == "compact":
            self._both(
                "CALL lake.system.rewrite_data_files(table => 'kif.{n}', "
                "options => map('rewrite-all', 'true'))"
            )
        elif kind == "roll back":
            self._roll_back()
        elif kind == "damage":
            self._damage()
        elif kind == "lay out":
            self._lay_out()
        elif kind == "add files":
            self._add_files()
        elif kind == "map names":
            self._map_names()
        elif kind == "rename":
            self._both("ALTER TABLE {t} RENAME COLUMN v TO w")
            self._both("ALTER TABLE {t} RENAME COLUMN w TO v")
        else:
            self.build()

    def _both(self, sql: str) -> None:
        self.log.append(sql)
        for name in ("ours", "plain"):
            self._session.sql(sql.replace("{t}", f"lake.kif.{name}").replace("{n}", name))

    def _insert(self, count: int) -> None:
        self._both(f"INSERT INTO {{t}} VALUES {', '.join(self._row() for _ in range(count))}")

    def _row(self) -> str:
        rng = self._rng
        key = rng.randint(0, IDS)
        id_, code, at = (
            str(key),
            f"'k{rng.choice([key, rng.randint(0, IDS)])}'",
            f"date_add(DATE'2020-01-01', {rng.choice([key, rng.randint(0, IDS)])})",
        )
        named = [self._literal(name) for name in ("day", "part", "ts")]
        found = [id_, code, at, str(rng.randint(0, 4)), *named]
        return f"({', '.join('NULL' if rng.random() < 0.05 else each for each in found)})"

    def _literal(self, column: str) -> str:
        rng = self._rng
        if rng.random() < 0.1:
            return "NULL"
        if column == "part":
            return rng.choice(["'a'", "'B'", "''", "'ä ''x'"])
        if column == "ts":  # before 1970 too, and on both sides of a change of the clock
            hour = rng.choice([-30 * 24, -1, 0, 1, 475_000]) + rng.randint(0, 30)
            return f"timestamp_micros({hour * 3_600_000_000 + rng.choice([0, 1, -1])})"
        return f"date_add(DATE'2024-01-01', {rng.randint(0, DAYS)})"

    def _roll_back(self) -> None:
        """To a moment at which both had equal rows: plain Spark also commits if nothing changes."""
        at = self._rng.randrange(len(self._moments))
        del self._moments[at + 1 :]
        for name, found in self._moments[at].items():
            self._session.sql(f"CALL lake.system.rollback_to_snapshot('kif.{name}', {found})")
        self.log.append(f"roll back to moment {at}")

    def _remember(self) -> None:
        self._moments.append(
            {
                name: self._session.sql(
                    f"SELECT snapshot_id FROM lake.kif.{name}.refs WHERE name = 'main'"
                ).head()[0]
                for name in ("ours", "plain")
            }
        )

    def _lay_out(self) -> None:
        fields = ("part", "bucket(3, id)", "months(at)", "v", "hours(ts)")
        field = self._rng.choice(fields)
        verb = self._rng.choice(["ADD", "DROP"])
        for name in ("ours", "plain"):
            try:
                self._session.sql(f"ALTER TABLE lake.kif.{name} {verb} PARTITION FIELD {field}")
            except (PySparkException, Py4JJavaError):
                return  # it has the field, or it does not
        self.log.append(f"{verb} {field}")

    def _add_files(self) -> None:
        """Adds files without field IDs, whose columns the table's name mapping finds."""
        rows = ", ".join(self._row() for _ in range(self._rng.randint(1, 8)))
        # A column with NULL alone has no type, and Iceberg can't read such a file.
        columns = ", ".join(
            f"CAST({name} AS {type_}) AS {name}"
            for name, type_ in map(str.split, _COLUMNS.split(", "))
        )
        frame = self._session.sql(
            f"SELECT {columns}, CAST(id + 1 AS bigint) AS other_id FROM VALUES {rows} "
            "AS t(id, code, at, v, day, part, ts)"
        )
        self._added += 1
        for name in ("ours", "plain"):
            folder = f"{self._root.parent}/added/{self._added}/{name}"
            try:
                frame.write.partitionBy(*self._layout).parquet(folder)
                self._session.sql(
                    f"CALL lake.system.add_files(table => 'kif.{name}', "
                    f"source_table => '`parquet`.`{folder}`')"
                )
            except (PySparkException, Py4JJavaError):
                return  # the table has another layout, in which no files can be added
        self.log.append(f"add files with {rows}")

    def _map_names(self) -> None:
        """Another column of the files without field IDs becomes the ID, or none does."""
        names = {name: [name] for name in ("id", "code", "at", "v", "day", "part", "ts")}
        names["id"] = self._rng.choice([["id"], ["other_id"], []])
        mapping = [{"field-id": at, "names": own} for at, own in enumerate(names.values(), 1)]
        self._both(
            "ALTER TABLE {t} SET TBLPROPERTIES ('schema.name-mapping.default' = "
            f"'{json.dumps(mapping)}')"
        )

    def _damage(self) -> None:
        self.build()
        index = build_index(self._session, self._root, "lake.kif.ours", self.indexed[0])
        folder = folder_of(self._root, index.table_uuid, index.field_id)
        path = self._rng.choice(sorted(folder.iterdir()))
        data = bytearray(path.read_bytes())
        data[self._rng.randrange(len(data))] ^= 1
        path.write_bytes(bytes(data))
        self.log.append(f"damage {path.name}")
        self._damaged = folder


def statement(rng: random.Random, columns: list[str]) -> str:
    """A statement on ``{t}`` by keys of ``columns``, most of which have an index."""
    name, condition = condition_on(rng, columns)
    source = rng.choice(["lake.kif.keys", "(SELECT * FROM lake.kif.keys WHERE v >= 0)"])
    values = "(k.id, k.code, k.at, 9, NULL, 'a')"
    into = "INSERT (id, code, at, v, day, part) VALUES"
    kind = rng.choice(["select"] * 4 + ["merge"] * 5 + ["delete", "update"])
    if kind == "merge":
        clauses = rng.sample(
            ["WHEN MATCHED AND t.v = 1 THEN DELETE", "WHEN MATCHED THEN UPDATE SET v = k.v"],
            rng.randint(1, 2),
        )
        clauses.sort(key=lambda each: "DELETE" not in each)
        if rng.random() < 0.7:
            also = rng.choice(["", " AND k.v > 0"])
            clauses.append(f"WHEN NOT MATCHED{also} THEN {into} {values}")
        return f"MERGE INTO {{t}} t USING {source} k ON {condition} {' '.join(clauses)}"
    where = rng.choice(
        [
            f"{name} IN (SELECT {name} FROM {source})",
            f"EXISTS (SELECT 1 FROM {source} k WHERE {condition})",
        ]
    )
    if kind == "delete":
        return f"DELETE FROM {{t}} t WHERE {where}"
    if kind == "update":
        return f"UPDATE {{t}} t SET day = DATE'2024-06-01' WHERE {where}"
    return rng.choice(
        [
            f"SELECT t.*, k.v AS kv FROM {{t}} t JOIN {source} k ON {condition}",
            f"SELECT k.id, t.day, t.v FROM {source} k LEFT JOIN {{t}} t ON {condition}",
            f"SELECT * FROM {{t}} t WHERE {where}",
            f"SELECT t.id, u.v, u.day FROM {{t}} t JOIN {source} k ON {condition} "
            "JOIN {t} u ON u.id = t.id",
            f"SELECT count(*), sum(v) FROM (SELECT t.v FROM {{t}} t JOIN {source} k ON {condition} "
            "UNION ALL SELECT v FROM {t})",
        ]
    )


def checked(session, found, path) -> list[str]:
    """What the independent check of the descriptor objects to."""
    used = {use.column for use in found.report.descriptor.index_uses if use.code == "USED"}
    if not used:
        return []
    table = static_table(session, "lake.kif.ours")
    problems = (
        problems_of_descriptor(table, column, UPath(path) / "descriptor.json") for column in used
    )
    try:
        return [each for found in problems for each in found]
    except ValueError as error:  # PyIceberg reads no files with a column that the mapping lacks
        if "Could not find field with name" not in str(error):
            raise
        return []


def test_random_statements_behind_an_index_have_plain_sparks_result(session, tmp_path):
    rng = random.Random(SEED)
    root = UPath(tmp_path / "indexes")
    wrong, codes, refused = [], Counter(), 0
    left = 0
    for number in range(STATEMENTS):
        if not left:
            tables, left = Tables(session, root, rng), EACH_TABLE
        left -= 1
        for _ in range(rng.choice([0, 1, 1, 2])):
            tables.change()
        session.sql("DELETE FROM lake.kif.keys")
        if rows := keys_of(rng, 0):
            session.sql(f"INSERT INTO lake.kif.keys VALUES {rows}")
        sql = statement(rng, tables.indexed)
        options = {"settings": ANY_COLUMN} if rng.random() < 0.3 else {}
        runs, between = (run_apart, [tables.change]) if rng.random() < 0.2 else (run, [])
        if "JOIN {t} u" in sql:  # without an index, it is a small table that gives keys
            between = []  # see "Small tables that change" of the guarantees
        failed, found, plain = {}, None, []
        with case(f"statement {number}", statement=sql) as finding:
            ours = sql.replace("{t}", "lake.kif.ours")
            try:
                found = runs(session, ours, tmp_path, *between, index_path=str(root), **options)
                codes.update(str(use.code) for use in found.report.descriptor.index_uses)
                codes["on a branch"] += "branch_hive_opt" in found.statement
            except (PySparkException, Py4JJavaError) as error:
                failed["ours"] = str(error)[:500]
            try:
                plain = rows_of(session, sql.replace("{t}", "lake.kif.plain"))
            except (PySparkException, Py4JJavaError) as error:
                failed["plain"] = str(error)[:500]
            contents = [
                rows_of(session, f"SELECT * FROM lake.kif.{name}") for name in ("plain", "ours")
            ]
            problems = [] if found is None else checked(session, found, tmp_path)
        refused += bool(failed)
        is_query = sql.startswith("SELECT")
        given = found.rows if found is not None and is_query else []
        same = contents[0] == contents[1] and (not is_query or failed or given == plain)
        branches = rows_of(session, "SELECT name FROM lake.kif.ours.refs WHERE name <> 'main'")
        if not same or len(failed) == 1 or branches or problems:
            said = {"ran": found and found.statement, "failed": failed, "before": tables.log}
            both = (plain, given) if contents[0] == contents[1] else contents
            wrong.append(
                finding(keys=rows, branches=branches, problems=problems, **said, **differing(*both))
            )
            left = 0
            print(f"statement {number} is wrong: {sql}", flush=True)
        if number % 100 == 99:
            print(f"{number + 1} statements, {len(wrong)} wrong", flush=True)
        tables.log.append(sql)
    counted = f"{repeat(FUZZ_KEY_INDEX=STATEMENTS)}: {refused} refused, {dict(codes)}"
    print(f"{counted}, {len(wrong)} wrong")
    assert not wrong, report(wrong, FUZZ_KEY_INDEX=STATEMENTS)
    assert codes["USED"] >= STATEMENTS / 5, counted
    assert codes["on a branch"] >= STATEMENTS / 12, counted
    assert refused <= STATEMENTS / 4, counted
