"""Random small tables of several writers."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_hive_opt.metastores.partitions import Partition, parse_name
from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.statement.catalog import Column, Table
from tests.worker.small_tables import Known

SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
COLUMNS = (
    ("i8", "tinyint"),
    ("i16", "smallint"),
    ("i32", "int"),
    ("i64", "bigint"),
    ("m", "decimal(7,2)"),
    ("n", "decimal(12,0)"),
    ("s", "string"),
    ("v", "varchar(5)"),
    ("d", "date"),
    ("b", "boolean"),
    ("f", "double"),
    ("t", "timestamp"),
    ("c", "char(3)"),
    ("st", "struct<a:int,b:string>"),
    ("ar", "array<int>"),
    ("mp", "map<string,int>"),
)
NESTED = ("st", "ar", "mp")
# What decides how Spark and Hive write files: each insert takes some of them.
WRITERS = {
    "spark.sql.parquet.writeLegacyFormat": ("true", "false"),
    "spark.sql.parquet.outputTimestampType": ("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"),
    "spark.sql.parquet.datetimeRebaseModeInWrite": ("LEGACY", "CORRECTED"),
    "spark.sql.parquet.int96RebaseModeInWrite": ("LEGACY", "CORRECTED"),
    "spark.sql.hive.convertMetastoreParquet": ("false", "true"),
    "spark.sql.hive.convertMetastoreOrc": ("false", "true"),
    "spark.sql.parquet.compression.codec": ("snappy", "gzip", "uncompressed"),
    "spark.hadoop.parquet.enable.dictionary": ("true", "false"),
}
TEXTS = (
    "",
    " ",
    "a",
    "a ",
    "A",
    "ab",
    "b",
    "é",
    "😀",
    "8",
    "08",
    "2020-01-31",
    "true",
    "null",
    "z%",
)
INTEGERS = (0, 1, 2, 3, -1, 7, 8, 20, 100, 127, -128)
DAYS = (
    *(date(2020, 1, day) for day in (1, 2, 3, 30, 31)),
    *(date(2020, 2, 28), date(2020, 2, 29), date(2019, 12, 31), date(1970, 1, 1)),
    *(date(2000, 1, 1), date(1969, 12, 31)),
)
EDGES = {
    "tinyint": (127, -128),
    "smallint": (32767, -32768),
    "int": (2**31 - 1, -(2**31)),
    "bigint": (2**63 - 1, -(2**63)),
    "decimal(7,2)": (Decimal("99999.99"), Decimal("-99999.99"), Decimal("0.01")),
    "decimal(12,0)": (Decimal(999999999999),),
    "date": (
        *(date(1582, 10, 15), date(9999, 12, 31), date(1900, 3, 1)),
        *(date(1582, 10, 4), date(1500, 2, 28), date(1, 1, 1)),
    ),
    "string": ("\U0010ffff", "a\tb", "it's", 'say "x"', "\uff41", "_", "%"),
}


def value(rng: random.Random, type_: str):
    if rng.random() < 0.15:
        return None
    if type_ in EDGES and rng.random() < 0.08:
        return rng.choice(EDGES[type_])
    if type_ in ("tinyint", "smallint", "int", "bigint"):
        return rng.choice(INTEGERS)
    if type_.startswith("decimal"):
        whole = Decimal(rng.choice(INTEGERS))
        return (
            whole
            if type_.endswith(",0)")
            else whole + Decimal(rng.choice(["0.00", "0.50", "0.25"]))
        )
    if type_ == "string":
        return rng.choice(TEXTS)
    if type_.startswith(("varchar", "char")):
        return rng.choice(TEXTS)[:3]
    if type_ == "date":
        return rng.choice(DAYS)
    if type_ == "boolean":
        return rng.random() < 0.5
    if type_ == "double":
        return rng.choice([0.0, -0.0, 1.5, float("nan"), 2.0])
    if type_.startswith("struct"):
        return value(rng, "int"), value(rng, "string")
    if type_.startswith("array"):
        return [value(rng, "int") for _ in range(rng.randint(0, 2))]
    if type_.startswith("map"):
        return {text: value(rng, "int") for text in rng.sample(TEXTS, rng.randint(0, 2))}
    return datetime(2020, 1, 1) + timedelta(hours=rng.randrange(100))


def rows(rng: random.Random, columns, count: int):
    return [tuple(value(rng, type_) for _, type_ in columns) for _ in range(count)]


ARROW = {
    "tinyint": [pa.int8(), pa.int16(), pa.int32()],
    "smallint": [pa.int16(), pa.int32()],
    "int": [pa.int32(), pa.int16()],
    "bigint": [pa.int64(), pa.int32()],
    "decimal(7,2)": [pa.decimal128(7, 2)],
    "decimal(12,0)": [pa.decimal128(12, 0)],
    "string": [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())],
    "varchar(5)": [pa.string()],
    "date": [pa.date32()],
    "boolean": [pa.bool_()],
    "double": [pa.float64()],
    "timestamp": [pa.timestamp("us", "UTC")],
    "char(3)": [pa.string()],
    "struct<a:int,b:string>": [pa.struct([("a", pa.int32()), ("b", pa.string())])],
    "array<int>": [pa.list_(pa.int32())],
    "map<string,int>": [pa.map_(pa.string(), pa.int32())],
}


class Maker:
    """Makes tables in Spark's catalog and in the worker's."""

    def __init__(self, session, folder: Path, rng: random.Random) -> None:
        self.session = session
        self.folder = folder
        self.rng = rng
        self.known = Known()

    def make(self, name: str) -> None:
        kinds = [self._spark_file, self._spark_file, self._text, self._text, self._arrow]
        self.rng.choice([*kinds, self._partitioned])(name)

    def _columns(self, without=()):
        some = [column for column in COLUMNS if column[0] not in without]
        kept = self.rng.sample(some, self.rng.randint(5, len(some)))
        return [column for column in some if column in kept]

    def _ddl(self, columns) -> str:
        return ", ".join(f"{name} {type_}" for name, type_ in columns)

    def _insert(self, name, columns, count, partition="", extra="") -> None:
        typed = [
            tuple(
                v.ljust(3) if type_ == "char(3)" and v is not None else v
                for v, (_, type_) in zip(row, columns, strict=True)
            )
            for row in rows(self.rng, columns, count)
        ]
        plain = [(n, "string" if t.startswith(("varchar", "char")) else t) for n, t in columns]
        frame = self.session.createDataFrame(typed, self._ddl(plain)).coalesce(1)
        frame.createOrReplaceTempView("fuzz_rows")
        conf = self.session.conf
        before = {setting: conf.get(setting, None) for setting in WRITERS}
        for setting, choices in WRITERS.items():
            conf.set(setting, self.rng.choice(choices))
        self.session.sql(f"INSERT INTO {name} {partition} SELECT * FROM fuzz_rows")
        for setting, text in before.items():
            conf.unset(setting) if text is None else conf.set(setting, text)

    def _spark_file(self, name: str) -> None:
        columns = self._columns()
        format_ = self.rng.choice(["parquet", "orc"])
        place = self.folder / name
        hive = self.rng.random() < 0.5
        using = f"STORED AS {format_}" if hive else f"USING {format_}"
        location = f"LOCATION '{place}'"
        made = "CREATE EXTERNAL TABLE" if hive else "CREATE TABLE"
        self.session.sql(f"{made} {name} ({self._ddl(columns)}) {using} {location}")
        for _ in range(self.rng.choice([1, 1, 2])):
            self._insert(name, columns, self.rng.randint(0, 9))
        if self.rng.random() < 0.3:
            self.session.sql(f"ALTER TABLE {name} ADD COLUMNS (extra int)")
            columns = [*columns, ("extra", "int")]
            if self.rng.random() < 0.5:
                self._insert(name, columns, 4)
        place.mkdir(exist_ok=True)
        self.known.add(f"{name}", columns, Storage(str(place), format_))

    def _text(self, name: str) -> None:
        columns = self._columns(without=NESTED)
        place = self.folder / name
        properties, form = self.rng.choice(
            [
                ({}, ""),
                (
                    {"field.delim": "|", "serialization.format": "|"},
                    "ROW FORMAT DELIMITED FIELDS TERMINATED BY '|'",
                ),
                (
                    {"field.delim": ",", "serialization.format": ",", "escape.delim": "\\"},
                    "ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' ESCAPED BY '\\\\'",
                ),
                (
                    {
                        "field.delim": ",",
                        "serialization.null.format": "",
                        "serialization.format": ",",
                    },
                    # Spark does not keep what NULL DEFINED AS says
                    f"ROW FORMAT SERDE '{SERDE}' WITH SERDEPROPERTIES ('field.delim' = ',', "
                    "'serialization.format' = ',', 'serialization.null.format' = '')",
                ),
            ]
        )
        self.session.sql(
            f"CREATE EXTERNAL TABLE {name} ({self._ddl(columns)}) {form} STORED AS TEXTFILE "
            f"LOCATION '{place}'"
        )
        if self.rng.random() < 0.6:
            self._insert(name, columns, self.rng.randint(0, 9))
        else:
            place.mkdir(exist_ok=True)
            self._by_hand(place / "f.txt", columns, properties)
        self.known.add(name, columns, Storage(str(place), "text", SERDE, properties), by_serde=True)

    def _by_hand(self, path: Path, columns, properties) -> None:
        """Lines as people write them, with numbers in many forms."""
        field = properties.get("field.delim", "\x01")
        null = properties.get("serialization.null.format", "\\N")
        lines = []
        for row in rows(self.rng, columns, self.rng.randint(1, 6)):
            texts = [
                null if v is None else self._written(v, type_)
                for v, (_, type_) in zip(row, columns, strict=True)
            ]
            lines.append(field.join(texts))
        ending = self.rng.choice(["\n", "\n", "\r\n"])
        path.write_bytes((ending.join(lines) + self.rng.choice(["", ending])).encode())

    def _written(self, v, type_: str) -> str:
        if self.rng.random() < 0.03:
            return self.rng.choice(
                ["", "x", "NULL", "+1", "1.5", " 1", "1e2", "2020-1-5", "TRUE", "-0"]
            )
        if isinstance(v, bool):
            return self.rng.choice(["true", "false", "TRUE"])
        return str(v)

    def _arrow(self, name: str) -> None:
        columns = self._columns(without=("c",))
        place = self.folder / name
        place.mkdir()
        self.session.sql(
            f"CREATE TABLE {name} ({self._ddl(columns)}) USING parquet LOCATION '{place}'"
        )
        for number in range(self.rng.choice([1, 1, 2])):
            there = [c for c in columns if self.rng.random() < 0.95] or columns[:1]
            self.rng.shuffle(there)
            data = rows(self.rng, there, self.rng.randint(0, 8))
            arrays, names = [], []
            for at, (column, type_) in enumerate(there):
                stored = self.rng.choice(ARROW[type_])
                values = [row[at] for row in data]
                if pa.types.is_integer(stored):
                    half = 1 << (stored.bit_width - 1)
                    values = [None if v is None else (v + half) % (2 * half) - half for v in values]
                plain = pa.string() if pa.types.is_dictionary(stored) else stored
                array = pa.array(values, plain)
                arrays.append(array.cast(stored) if plain != stored else array)
                names.append(column.upper() if self.rng.random() < 0.3 else column)
            pq.write_table(
                pa.table(arrays, names=names),
                place / f"{number}.parquet",
                compression=self.rng.choice(["snappy", "gzip", "none", "zstd"]),
                use_dictionary=self.rng.random() < 0.5,
                use_deprecated_int96_timestamps=self.rng.random() < 0.5,
                store_decimal_as_integer=self.rng.random() < 0.5,
                version=self.rng.choice(["1.0", "2.6"]),
                data_page_version=self.rng.choice(["1.0", "2.0"]),
                store_schema=self.rng.random() < 0.7,
            )
        (place / "_SUCCESS").touch()
        self.known.add(name, columns, Storage(str(place), "parquet"))

    def _partitioned(self, name: str) -> None:
        columns = self._columns(without=NESTED)
        keys = self.rng.choice([[("p", "int")], [("p", "string")], [("p", "date"), ("q", "int")]])
        place = self.folder / name
        text = self.rng.random() < 0.4
        if text:
            self.session.sql(
                f"CREATE EXTERNAL TABLE {name} ({self._ddl(columns)}) "
                f"PARTITIONED BY ({self._ddl(keys)}) STORED AS TEXTFILE LOCATION '{place}'"
            )
        else:
            self.session.sql(
                f"CREATE TABLE {name} ({self._ddl([*columns, *keys])}) USING parquet "
                f"PARTITIONED BY ({', '.join(n for n, _ in keys)}) LOCATION '{place}'"
            )
        found = {}
        for _ in range(self.rng.randint(1, 3)):
            values = []
            for _, type_ in keys:
                v = value(self.rng, type_)
                values.append(
                    v
                    if v not in (None, "")
                    else {"int": 5, "string": "x"}.get(type_, date(2020, 1, 1))
                )
            listed = ", ".join(
                f"{n}={v if t == 'int' else repr(str(v)).replace(chr(92), chr(92) * 2)}"
                for (n, t), v in zip(keys, values, strict=True)
            )
            if "'" in str(values):
                continue
            self._insert(name, columns, self.rng.randint(1, 4), f"PARTITION ({listed})")
        for row in self.session.sql(f"SHOW PARTITIONS {name}").collect():
            found[row[0]] = row[0]
        serde = SERDE if text else ""
        partitions = [
            (parse_name(each), Storage(str(place / each), "text" if text else "parquet", serde))
            for each in found
        ]
        self.known.add(
            name,
            columns,
            Storage(str(place), "text" if text else "parquet", serde),
            keys,
            partitions,
            by_serde=text,
        )


ODD = ("08", "x", "+1", "2020-1-5", " 1", "1.50", "TRUE", "2020-02-30", "99999999999", "1500-01-01")


def random_partitions(rng: random.Random):
    """A table with random partitions."""
    kinds = ("int", "bigint", "string", "string", "date", "date", "boolean", "decimal(7,2)")
    kinds += ("varchar(5)", "timestamp", "tinyint", "char(3)")
    types = [rng.choice(kinds) for _ in range(rng.choice([1, 2, 2, 3]))]
    columns = tuple(Column(f"p{at}", type_) for at, type_ in enumerate(types))
    odd = rng.choice([0, 0, 0.1])
    found = []
    for _ in range(rng.randint(0, 12)):
        texts = []
        for type_ in types:
            v = value(rng, type_)
            text = None if v in (None, "") else str(v).lower() if type_ == "boolean" else str(v)
            texts.append(rng.choice(ODD) if rng.random() < odd else text)
        found.append(Partition(tuple(texts)))
    table = Table("default.f", (), columns, by_serde=rng.random() < 0.3)
    return table, list(dict.fromkeys(found))
