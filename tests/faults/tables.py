"""Tables that are made and read past Spark: many, quickly, and with nothing of it in a cache."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pyarrow import parquet

DATABASE = "faults"
SOURCES = (
    "CREATE TABLE faults.sales (item INT) PARTITIONED BY (ds STRING) STORED AS PARQUET",
    "INSERT INTO faults.sales SELECT CAST(n.id AS INT), concat('d', d.id) "
    "FROM range(3) n CROSS JOIN range(12) d",
    "CREATE TABLE faults.days STORED AS PARQUET AS "
    "SELECT concat('d', id) AS ds, CAST(id AS INT) AS week FROM range(4)",
    "CREATE TABLE faults.hive (item INT) PARTITIONED BY (a STRING, b INT) STORED AS PARQUET",
    "CREATE TABLE faults.spark (item INT, a STRING, b INT) USING parquet PARTITIONED BY (a, b)",
    "CREATE TABLE faults.whole (item INT) STORED AS PARQUET",
    "INSERT INTO faults.hive VALUES (100, 'x', 1), (101, 'x', 2), (102, 'y', 1)",
    "INSERT INTO faults.spark VALUES (100, 'x', 1), (101, 'x', 2), (102, 'y', 1)",
    "INSERT INTO faults.whole VALUES (100)",
)
JOIN = "faults.sales s JOIN faults.days d ON s.ds = d.ds AND d.week < 2"

State: TypeAlias = "dict[str, tuple[int, ...]] | None"
"""Items by partition, in the folders that the metastore knows; ``None`` where there is no table."""


@dataclass(frozen=True)
class Kind:
    """A kind of statement; ``{t}`` is its table."""

    name: str
    template: str
    sql: str
    kept: int = 2  # partitions of the read table


_PARTITIONED = (
    Kind(f"{verb.split()[1].lower()} {into} {template}", template, f"{verb} TABLE {{t}} {text}")
    for template in ("hive", "spark")
    for verb in ("INSERT INTO", "INSERT OVERWRITE")
    for into, text in (
        ("static", f"PARTITION (a = 'x', b = 1) SELECT s.item FROM {JOIN}"),
        ("mixed", f"PARTITION (a = 'x', b) SELECT s.item, s.item FROM {JOIN}"),
        ("dynamic", f"PARTITION (a, b) SELECT s.item, s.ds, s.item FROM {JOIN}"),
    )
)
KINDS = (
    *_PARTITIONED,
    Kind("into whole", "whole", f"INSERT INTO {{t}} SELECT s.item FROM {JOIN}"),
    Kind("overwrite whole", "whole", f"INSERT OVERWRITE {{t}} SELECT s.item FROM {JOIN}"),
    Kind("create", "", f"CREATE TABLE {{t}} USING parquet AS SELECT s.item FROM {JOIN}"),
    Kind("create hive", "", f"CREATE TABLE {{t}} STORED AS PARQUET AS SELECT s.item FROM {JOIN}"),
    Kind(
        "several",
        "hive",
        f"FROM (SELECT s.item, s.ds FROM {JOIN}) s "
        "INSERT INTO TABLE {t} PARTITION (a = 'x', b = 1) SELECT item "
        "INSERT OVERWRITE TABLE {t} PARTITION (a, b) SELECT item, ds, 5",
        kept=0,  # it passes through
    ),
)


class LocalFiles:
    """The files of tables on a local disk, by the URIs of their folders."""

    def copy(self, source: str, target: str) -> None:
        """Copies a table's folder."""
        shutil.copytree(_path(source), _path(target))

    def items(self, folder: str) -> tuple[int, ...]:
        """The items in the files of a folder."""
        files = (path for path in _path(folder).glob("*") if path.is_file())
        return items_of(f.read_bytes() for f in files if f.name[0] not in "._")

    def remove(self, folder: str) -> None:
        """Deletes a table's folder, if it is there."""
        shutil.rmtree(_path(folder), ignore_errors=True)


class Tables:
    """Copies of the templates, created and read over Thrift; ``client`` does not use a proxy.

    The copies are below ``folder``, a URI.
    """

    def __init__(self, client: Any, folder: str, files: Any = None) -> None:
        self._client = client
        self._folder = folder
        self._files = files or LocalFiles()
        self._count = 0

    def copy(self, template: str) -> str:
        """A new table like the template, or only a name if there is no template."""
        self._count += 1
        name = f"t{self._count}"
        if template:
            table = self._client.get_table(DATABASE, template)
            source, place = table.sd.location, f"{self._folder}/{name}"
            self._files.copy(source, place)
            partitions = self._client.get_partitions(DATABASE, template, -1)
            table.tableName, table.sd.location = name, place
            parameters = table.sd.serdeInfo.parameters
            if "path" in parameters:
                parameters["path"] = place
            self._client.create_table(table)
            for part in partitions:
                part.tableName = name
                part.sd.location = part.sd.location.replace(source, place)
            if partitions:
                self._client.add_partitions(partitions)
        return name

    def state(self, name: str) -> State:
        """What the table holds."""
        if name not in self._client.get_all_tables(DATABASE):
            return None
        table = self._client.get_table(DATABASE, name)
        if not table.partitionKeys:
            return {"": self._files.items(table.sd.location)}
        return {
            "/".join(part.values): items
            for part in self._client.get_partitions(DATABASE, name, -1)
            if (items := self._files.items(part.sd.location))
        }

    def drop(self, name: str) -> None:
        """Removes the table and its files."""
        if name in self._client.get_all_tables(DATABASE):
            place = self._client.get_table(DATABASE, name).sd.location
            self._client.drop_table(DATABASE, name, False)
            self._files.remove(place)


def items_of(files: Iterable[bytes]) -> tuple[int, ...]:
    """The items in Parquet files, sorted."""
    tables = (parquet.ParquetFile(io.BytesIO(data)).read() for data in files)
    return tuple(sorted(item for table in tables for item in table["item"].to_pylist()))


def _path(location: str) -> Path:
    return Path(location.removeprefix("file:").replace("//", "/"))
