"""The rows of a key set, for the driver: as Python values, and as a relation if Spark needs one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from airflow_hive_opt.documents.key_set import ListedKeys
from airflow_hive_opt.metastores.partitions import Value
from airflow_hive_opt.spark.keys.local_rows import WHOLE_CALENDAR, LocalRows
from airflow_hive_opt.spark.session.session_conf import conf_set
from airflow_hive_opt.statement.zip_strict import zip_strict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TYPES: dict[str, DataType] = {
    "tinyint": ByteType(),
    "smallint": ShortType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "string": StringType(),
    "date": DateType(),
}


class TakenRows:
    """Like :class:`~airflow_hive_opt.spark.keys.local_rows.LocalRows`, without a query.

    ``counted`` is the name of the last column, which has the number of rows with each key.
    """

    def __init__(self, session: SparkSession, keys: ListedKeys, counted: str) -> None:
        self._session = session
        self._keys = keys
        self._counted = counted
        self.count = len(keys.numbers)

    @cached_property
    def schema(self) -> StructType:
        """The columns and their types."""
        fields = [StructField(f"c{at}", _TYPES[type_]) for at, type_ in enumerate(self._keys.types)]
        return StructType([*fields, StructField(self._counted, LongType())])

    @cached_property
    def frame(self) -> DataFrame:
        """The rows as a local relation."""
        rows = list(zip_strict(*self._keys.values, map(str, self._keys.numbers)))
        listed = ", ".join(
            f"CAST(__key[{at}] AS {field.dataType.simpleString()}) AS {field.name}"
            for at, field in enumerate(self.schema.fields)
        )
        sql = (
            f"SELECT {listed} FROM "
            "(SELECT explode(from_json(:keys, 'array<array<string>>')) AS __key)"
        )
        with conf_set(self._session, WHOLE_CALENDAR):
            # one text for all: passing values one by one would take nearly a millisecond each
            exploded = self._session.sql(sql, args={"keys": json.dumps(rows)})
            found = LocalRows(self._session, exploded)
        if found.count != self.count:
            raise ValueError(
                f"Spark makes {found.count} rows of the {self.count} keys of a key set"
            )
        return found.frame

    def values(self, families: Sequence[str | None]) -> list[tuple[Value | None, ...]]:  # noqa: ARG002
        """The rows as Python values, with the numbers."""
        return [(*row, number) for row, number in zip_strict(self._keys.rows, self._keys.numbers)]
