"""A partitioned table in a catalog, a small table, and the worker's lists of its partitions."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
from upath import UPath

from airflow_hive_opt.documents.descriptor import Descriptor, load
from airflow_hive_opt.documents.job import Job, Stages
from airflow_hive_opt.engines.files import open_uri
from airflow_hive_opt.engines.scan import PrunedScan, scan_of
from airflow_hive_opt.metastores.glue.connection import GlueSettings
from airflow_hive_opt.metastores.glue.metastore import GlueMetastore
from airflow_hive_opt.metastores.partition_names import partition_name
from airflow_hive_opt.worker.local_task import Place, find, hand_over
from tests.services.glue_stand_in import REGION, create_databases, create_parquet_table

FACT, KEYS = "lake.fact", "lake.keys"
ZONE = "Europe/Berlin"
TYPES = {
    "k": "string",
    "n": "bigint",
    "d": "date",
    "m": "decimal(5,2)",
    "b": "boolean",
    "ts": "timestamp",
}
JOINED = ("k", "n", "d", "m", "b")
_ARROW = {
    "k": pa.string(),
    "n": pa.int64(),
    "d": pa.date32(),
    "m": pa.decimal128(5, 2),
    "b": pa.bool_(),
    "ts": pa.timestamp("us", "UTC"),
}
TEXTS = ("a", "A", "it's", 'say "no"', "x/y", "100%", "b\\s", "é日", "a=b", " a", "%2F", None)
NUMBERS = (0, 7, -3, 2**40, None)
DAYS = (date(2024, 1, 31), date(1999, 12, 31), date(2024, 2, 29), None)
AMOUNTS = (Decimal("1.20"), Decimal("-0.05"), Decimal("100.00"), None)
FLAGS = (True, False, None)
# Wall clocks; the second and the third are those of the nights when clocks change.
TIMES = (
    datetime(2024, 1, 31, 10),
    datetime(2024, 3, 31, 2, 30),
    datetime(2024, 10, 27, 2, 30),
    datetime(2024, 1, 31, 0, 0, 0, 250000),
    None,
)
_NUMBERS_OF_RUNS = itertools.count(1)
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Lake:
    """The tables and their rows, as values in Python.

    ``facts`` are the rows of :data:`FACT`: an id, then the partition columns. ``keys`` are those of
    :data:`KEYS`: a number, then the columns of :data:`JOINED`. ``ids`` are those at a location.
    """

    folder: Path
    endpoint: str
    facts: tuple[Row, ...]
    keys: tuple[Row, ...]
    ids: dict[str, list[int]]
    _descriptors: dict[str, Descriptor] = field(default_factory=dict)

    def metastore(self) -> GlueMetastore:
        """A client of the catalog."""
        session = boto3.session.Session("a", "b", region_name=REGION)
        return GlueMetastore(GlueSettings(REGION, self.endpoint), session=session)

    def local_task(self, sql: str) -> dict[str, Any]:
        """The output of the worker's local task, as XCom has it."""
        path = self.folder / "runs" / f"{next(_NUMBERS_OF_RUNS)}.json"
        job = Job(sql, path=str(path), stages=Stages.LOCAL_TASK)
        found = find(job, Place(self.metastore(), True, {}, open_uri))
        outcome = hand_over(found, job, UPath(path))
        assert outcome.summary is not None
        return outcome.summary

    def descriptor(self, sql: str) -> Descriptor:
        """The descriptor that the worker's local task writes."""
        if sql not in self._descriptors:
            self._descriptors[sql] = load(UPath(self.local_task(sql)["uri"]))
        return self._descriptors[sql]

    def scan(self, sql: str) -> PrunedScan:
        """What the statement reads of :data:`FACT`."""
        return scan_of(self.descriptor(sql), FACT, ZONE)

    @property
    def fact_columns(self) -> pa.Table:
        """All rows of :data:`FACT`, as Spark reads them."""
        columns = list(zip(*self.facts, strict=True))
        arrays = [pa.array(columns[0], pa.int64())]
        for name, values in zip(TYPES, columns[1:], strict=True):
            arrays.append(pa.array(map(instant, values), _ARROW[name]))
        return pa.table(arrays, names=["id", *TYPES])

    @property
    def key_columns(self) -> pa.Table:
        """All rows of :data:`KEYS`."""
        columns = list(zip(*self.keys, strict=True))
        arrays = [pa.array(columns[0], pa.int32())]
        arrays += [
            pa.array(values, _ARROW[name]) for name, values in zip(JOINED, columns[1:], strict=True)
        ]
        return pa.table(arrays, names=["g", *JOINED])

    def joined(self, columns: tuple[str, ...], groups: set[int]) -> list[int]:
        """The ids of the facts that join with the keys of the groups, each as often as it does."""
        at = [JOINED.index(name) + 1 for name in columns]
        wanted = [tuple(key[i] for i in at) for key in self.keys if key[0] in groups]
        return sorted(
            fact[0]
            for fact in self.facts
            for key in wanted
            if None not in key and tuple(fact[i] for i in at) == key
        )


def instant(value: Any) -> Any:
    """The instant of a wall clock in :data:`ZONE`; other values stay."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=ZoneInfo(ZONE)).astimezone(timezone.utc)
    return value


def text_of(value: Any) -> str | None:
    """A partition's value as Spark writes it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat(" ").rstrip("0") if value.microsecond else value.isoformat(" ")
    return str(value)


def make(folder: Path, stand_in: Any) -> Lake:
    """Writes the tables' files, and their entries in the catalog."""
    rng = random.Random(5)
    partitions: list[Row] = []
    for k, n in itertools.product(TEXTS, NUMBERS):
        others = map(rng.choice, (DAYS, AMOUNTS, FLAGS, TIMES))
        partitions.append((k, n, *others))
    keys = tuple(
        (number, *map(rng.choice, (TEXTS, NUMBERS, DAYS, AMOUNTS, FLAGS))) for number in range(40)
    )
    client = stand_in.client()
    create_databases(client, folder)
    facts = []
    entries = []
    at_location = {}
    for number, partition in enumerate(partitions):
        texts = [text_of(value) for value in partition]
        # some lie outside the table's folder, where the path does not tell the values
        elsewhere = number % 7 == 3
        name = f"part {number}" if elsewhere else partition_name(tuple(TYPES), texts)
        place = folder / ("elsewhere" if elsewhere else "fact") / name
        place.mkdir(parents=True)
        ids = [number * 2, number * 2 + 1]
        facts += [(id_, *partition) for id_ in ids]
        for at, id_ in enumerate(ids):
            pq.write_table(pa.table({"id": pa.array([id_])}), place / f"part-{at}.parquet")
        (place / "_SUCCESS").touch()
        at_location[f"file:{place}"] = ids
        entries.append(([text or "__HIVE_DEFAULT_PARTITION__" for text in texts], f"file:{place}"))
    lake = Lake(folder, stand_in.endpoint, tuple(facts), keys, at_location)
    (folder / "keys").mkdir()
    pq.write_table(lake.key_columns, folder / "keys" / "part-0.parquet")
    small = [("g", "int"), *((name, TYPES[name]) for name in JOINED)]
    create_parquet_table(client, "keys", folder, small)
    create_parquet_table(client, "fact", folder, [("id", "bigint")], list(TYPES.items()), entries)
    return lake
