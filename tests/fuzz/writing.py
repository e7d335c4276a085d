"""Random statements that write the result of a star join to tables that exist twice.

``{db}`` is the database of the written tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

SOURCE = "fuzz_sources"
HIVE = ("STORED AS PARQUET", "STORED AS ORC", "STORED AS TEXTFILE")
SPARK = ("USING parquet", "USING orc")

# Data columns: type, and expressions over the join's f.id that fit it.
VALUES = {
    "INT": ("f.id", "f.id * 2", "CAST(NULL AS INT)", "k.id"),
    "STRING": (
        "CAST(X'FF41' AS STRING)",
        "concat('v', f.id)",
        "''",
        "CAST(NULL AS STRING)",
        "'a\\tb|é%'",
    ),
    "DATE": ("DATE'0001-01-01'", "DATE'1500-02-28'", "date_add(DATE'2026-01-30', f.id)"),
    "TIMESTAMP": ("TIMESTAMP'2026-03-29 02:30:00'", "TIMESTAMP'1883-11-18 12:00:00'"),
    "DECIMAL(10,2)": ("CAST(f.id AS DECIMAL(10,2)) / 3", "-0.005", "CAST(NULL AS DECIMAL(10,2))"),
    "BINARY": ("X'00FF'", "CAST('x' AS BINARY)"),
    "ARRAY<INT>": ("array(f.id, NULL)", "CAST(array() AS ARRAY<INT>)"),
    "VARCHAR(6)": ("'abc '", "concat('v', f.id)", "'much too long'"),
}
NOT_IN_TEXT_FILES = ("BINARY", "ARRAY<INT>")
# Partition columns: name and type, values written out, values of rows.
PARTITIONS = {
    "ds": (
        "STRING",
        ("'a'", "'B c'", "'a=b/c'", "'%20'", "'1 '", '"it\'s"', "'é'", "null", "5"),
        ("concat('d', f.id % 3)", "IF(f.id % 2 = 0, 'a', NULL)", "'B c'", "'a/b'", "''"),
    ),
    "n": (
        "INT",
        ("1", "'08'", "-3", "null", "'x'"),
        ("f.id % 3", "IF(f.id = 1, NULL, 7)", "-3"),
    ),
    "day": (
        "DATE",
        ("'2026-01-31'", "DATE'2026-02-01'", "'1582-10-04'"),
        ("date_add(DATE'2026-01-30', f.id % 3)", "DATE'2026-01-31'"),
    ),
}
SETTINGS = (
    {},
    {},
    {"spark.sql.sources.partitionOverwriteMode": "dynamic"},
    {"spark.sql.storeAssignmentPolicy": "LEGACY"},
    {"spark.sql.storeAssignmentPolicy": "STRICT"},
    {"spark.sql.ansi.enabled": "false"},
    {"spark.sql.session.timeZone": "Asia/Kolkata"},
)


@dataclass(frozen=True)
class Write:
    """What to make before, and the statement; both have ``{db}`` in them."""

    before: tuple[str, ...]
    sql: str
    settings: dict[str, str]
    tables: tuple[str, ...]


@dataclass(frozen=True)
class Target:
    """A table to write into."""

    name: str
    how: str
    columns: tuple[tuple[str, str], ...]
    partitions: tuple[str, ...]

    @property
    def ddl(self) -> str:
        """Its CREATE TABLE."""
        columns = [f"{name} {type_}" for name, type_ in self.columns]
        by = [f"{name} {PARTITIONS[name][0]}" for name in self.partitions]
        if self.how in SPARK:
            named = f" PARTITIONED BY ({', '.join(self.partitions)})" if by else ""
            return f"CREATE TABLE {{db}}.{self.name} ({', '.join(columns + by)}) {self.how}{named}"
        named = f" PARTITIONED BY ({', '.join(by)})" if by else ""
        return f"CREATE TABLE {{db}}.{self.name} ({', '.join(columns)}){named} {self.how}"


def write(rng: Random) -> Write:
    """A statement with its tables."""
    target = _target(rng, "t")
    before = [target.ddl, *_contents(rng, target)]
    form = rng.choices((_insert, _create, _several, _of_itself), weights=(12, 3, 2, 1))[0]
    sql, tables = form(rng, target, before)
    return Write(tuple(before), sql, dict(rng.choice(SETTINGS)), tables)


def _target(rng: Random, name: str) -> Target:
    how = rng.choice((*HIVE, *HIVE[:1], *SPARK, *SPARK[:1]))
    types = [
        type_ for type_ in VALUES if how != "STORED AS TEXTFILE" or type_ not in NOT_IN_TEXT_FILES
    ]
    columns = tuple((f"c{n}", rng.choice(types)) for n in range(rng.randint(1, 3)))
    partitions = tuple(rng.sample(list(PARTITIONS), rng.choice((0, 1, 1, 2, 2))))
    return Target(name, how, columns, partitions)


def _contents(rng: Random, target: Target) -> list[str]:
    """What the table holds before."""
    if rng.random() < 0.3:
        return []
    values = [*_values(rng, target), *_partition_values(rng, target.partitions)]
    source = f"(SELECT CAST(id AS INT) AS id FROM range({rng.randint(1, 4)}))"
    return [
        f"INSERT INTO {{db}}.{target.name} SELECT {', '.join(values)} "
        f"FROM {source} f CROSS JOIN {source} k"
    ]


def _insert(rng: Random, target: Target, before: list[str]) -> tuple[str, tuple[str, ...]]:
    verb = rng.choice(("INSERT INTO", "INSERT OVERWRITE"))
    into, selected = _into(rng, verb, target)
    query = _query(rng, selected)
    if rng.random() < 0.15:
        head, _, rest = query.partition("FROM")
        return f"WITH w AS ({query}) {into} SELECT * FROM w" if rest else head, (target.name,)
    return f"{into} {query}", (target.name,)


def _into(rng: Random, verb: str, target: Target) -> tuple[str, list[str]]:
    """INSERT up to its query, and the expressions that the query must give."""
    table = rng.choice(("", "TABLE ")) if verb.endswith("INTO") else "TABLE "
    text = f"{verb} {table}{{db}}.{target.name}"
    selected = _values(rng, target)
    written = rng.randint(0, len(target.partitions))
    if target.partitions and (written or rng.random() < 0.7):
        specs = [
            f"{name} = {rng.choice(PARTITIONS[name][1])}" for name in target.partitions[:written]
        ]
        text += f" PARTITION ({', '.join([*specs, *target.partitions[written:]])})"
        if verb.endswith("OVERWRITE") and written == len(target.partitions) > rng.random() * 8:
            text += " IF NOT EXISTS"
        selected += _partition_values(rng, target.partitions[written:])
    else:
        selected += _partition_values(rng, target.partitions)
        if rng.random() < 0.3:
            names = [*(name for name, _ in target.columns), *target.partitions]
            text += f" ({', '.join(names)})"
    return text, selected


def _create(rng: Random, target: Target, before: list[str]) -> tuple[str, tuple[str, ...]]:
    made = _target(rng, "made")
    selected = [*_values(rng, made), *_partition_values(rng, made.partitions)]
    names = [*(name for name, _ in made.columns), *made.partitions]
    listed = [f"{text} AS {name}" for text, name in zip(selected, names, strict=True)]
    exists = rng.choice(("", "", "IF NOT EXISTS "))
    name = rng.choice(("made", "made", "t"))
    by = f" PARTITIONED BY ({', '.join(made.partitions)})" if made.partitions else ""
    return (
        f"CREATE TABLE {exists}{{db}}.{name} {made.how}{by} AS {_query(rng, listed)}",
        (target.name, "made"),
    )


def _several(rng: Random, target: Target, before: list[str]) -> tuple[str, tuple[str, ...]]:
    """FROM ... INSERT ... INSERT ..."""
    other = _target(rng, "other")
    before.append(other.ddl)
    parts = []
    for each in (target, other):
        verb = rng.choice(("INSERT INTO", "INSERT OVERWRITE"))
        into, selected = _into(rng, verb, each)
        texts = [text.replace("k.id", "f.id") for text in selected]
        where = rng.choice(("", " WHERE f.id % 2 = 0"))
        parts.append(f"{into.replace('INTO {', 'INTO TABLE {')} SELECT {', '.join(texts)}{where}")
    joined = f"SELECT f.id FROM {_join(rng)}"
    return f"FROM ({joined}) f {' '.join(parts)}", (target.name, other.name)


def _of_itself(rng: Random, target: Target, before: list[str]) -> tuple[str, tuple[str, ...]]:
    """The table that is written is read; Spark refuses some of these."""
    verb = rng.choice(("INSERT INTO", "INSERT OVERWRITE"))
    names = [*(name for name, _ in target.columns), *target.partitions]
    listed = ", ".join(f"t.{name}" for name in names)
    return (
        f"{verb} {{db}}.t SELECT {listed} FROM {{db}}.t t JOIN {SOURCE}.keys k "
        f"ON k.id = {rng.randint(0, 2)}",
        (target.name,),
    )


def _query(rng: Random, selected: list[str]) -> str:
    texts = list(selected)
    if rng.random() < 0.08:  # fails after some rows
        texts[0] = f"IF(f.id = 5, raise_error('at work'), {texts[0]})"
    query = f"SELECT {', '.join(texts)} FROM {_join(rng)}"
    form = rng.random()
    if form < 0.1:
        return f"{query} UNION ALL {query}"
    if form < 0.2:
        return f"{query} ORDER BY f.id"
    if form < 0.3:
        return f"{query} DISTRIBUTE BY f.id % 2"
    if form < 0.4:
        return query.replace("SELECT ", "SELECT DISTINCT ", 1)
    return query


def _join(rng: Random) -> str:
    below = rng.choice((-1, 1, 2, 3, 9))
    return rng.choice(
        (
            f"{SOURCE}.fact f JOIN {SOURCE}.keys k ON f.p = k.p AND k.id < {below}",
            f"{SOURCE}.fact f JOIN {SOURCE}.keys k ON f.p + 0 = k.p WHERE k.id < {below}",
            f"{SOURCE}.fact f JOIN {SOURCE}.keys k ON f.p = k.p AND f.id < 4",
        )
    )


def _values(rng: Random, target: Target) -> list[str]:
    return [rng.choice(VALUES[type_]) for _, type_ in target.columns]


def _partition_values(rng: Random, names: tuple[str, ...]) -> list[str]:
    return [rng.choice(PARTITIONS[name][2]) for name in names]
