"""What a table format must do beyond its other methods so that a key index can be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Protocol

from airflow_hive_opt.spark.catalog.lakes.lake_format import LakeFormat
from airflow_hive_opt.statement.catalog import Column, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OWN_VALUES = ""


@dataclass(frozen=True)
class Identity:
    """What an index knows a table and its columns by: what stays the same under another name.

    ``columns`` has each column's name in lower case with its ID, without columns whose names differ
    in their case only.
    """

    uuid: str
    columns: Mapping[str, str]

    @classmethod
    def of(cls, uuid: str, columns: Iterable[tuple[str, str]]) -> Identity:
        """The identity with these columns: their names and IDs.

        >>> Identity.of("u", [("Day", "1"), ("code", "2"), ("Code", "3")])
        Identity(uuid='u', columns={'day': '1'})
        """
        pairs = [(name.lower(), at) for name, at in columns]
        names = Counter(name for name, _ in pairs)
        return cls(uuid, {name: at for name, at in pairs if names[name] == 1})


@dataclass(frozen=True)
class PartitionField:
    """A field of a table's partitions, with its ``name`` in the table's metadata.

    ``transform`` is ``year``, ``month``, ``day`` or ``hour`` of ``column``; :data:`OWN_VALUES` for
    the column's own values.
    """

    column: Column
    name: str
    transform: str = OWN_VALUES


Values = tuple[Optional[str], ...]
"""The values of one partition as text, in the order of the fields."""


class DataFile(NamedTuple):
    """A data file: the ``values`` of its partition, and its size in ``bytes``."""

    values: Values
    bytes: int


class IndexedFormat(LakeFormat, Protocol):
    """A format whose tables can have key indexes, in Spark's own session.

    Every method may raise the errors of Spark, of the JVM and of py4j.
    """

    has_branches: bool
    """Whether a statement can change a table on a branch."""

    def identity(self, session: SparkSession, loaded: Any) -> Identity:
        """What indexes know the table by that Spark's catalog has loaded."""

    def partition_fields(self, table: Table) -> Sequence[PartitionField]:
        """The fields whose values can become conditions on their columns, in all its layouts."""

    def has_only(self, loaded: Any, fields: Collection[PartitionField]) -> bool:
        """Whether ``fields`` are all fields of the loaded table's partitions, in all its files."""

    def data_files(
        self,
        session: SparkSession,
        table: Table,
        version: str,
        table_id: str,
        fields: Sequence[PartitionField],
    ) -> dict[str, DataFile]:
        """The data files of a version by their paths, each with its values of ``fields``.

        ``table_id`` is as in :meth:`table_id`. Raises ``ValueError`` if the version does not have
        the fields, or is not the table's.
        """
