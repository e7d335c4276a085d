"""The distinct keys of a small table, held by the driver (HIVE-5119, step 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Union

from airflow_hive_opt.documents.key_set import ListedKeys
from airflow_hive_opt.metastores.partitions import Value, fits
from airflow_hive_opt.pruning.decisions import KeySource
from airflow_hive_opt.spark.keys.local_rows import LocalRows
from airflow_hive_opt.spark.keys.taken_rows import TakenRows
from airflow_hive_opt.statement.types import TIMESTAMP, family

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS = "__rows"
"""The column that counts the source's rows; see ``KeySource.counting_sql``."""


@dataclass(frozen=True)
class Keys:
    """The distinct keys of a source, held by the driver.

    The columns of ``rows`` are ``c0``, ``c1``, ... in the order of the source's columns. The last
    column counts the source's rows with these keys. ``exact`` is false if there may be keys that
    the source does not have any more.
    """

    source: KeySource
    rows: Union[LocalRows, TakenRows]
    exact: bool = True

    def of(self, source: KeySource) -> Keys:
        """See :class:`~airflow_hive_opt.local_task.engine.Keys`."""
        return replace(self, source=source)

    @property
    def count(self) -> int:
        """See :class:`~airflow_hive_opt.local_task.engine.Keys`."""
        return self.rows.count

    @property
    def frame(self) -> DataFrame:
        """The keys as a relation with columns ``c0``, ``c1``, ..."""
        return self.rows.frame.drop(ROWS)

    @property
    def unique(self) -> bool:
        """See :class:`~airflow_hive_opt.local_task.engine.Keys`."""
        return self.exact and all(row[-1] == 1 for row in self._values)

    def tuples(self, types: Sequence[str]) -> frozenset[tuple[Value, ...]] | None:
        """See :class:`~airflow_hive_opt.local_task.engine.Keys`."""
        if not self.source.partition_columns:
            return None
        families = [family(type_) for type_ in types]
        if None in families or families != self._families[:-1]:
            return None
        rows = (zip(row, types) for row in self._values)
        tuples = (tuple(v for v, type_ in row if v is not None and fits(v, type_)) for row in rows)
        return frozenset(found for found in tuples if len(found) == len(types))

    def column(self, at: int, type_: str) -> frozenset[int | str | date] | None:
        """See :class:`~airflow_hive_opt.local_task.engine.Keys`."""
        if family(type_) is None or family(type_) != self._families[at]:
            return None
        values = (row[at] for row in self._values)
        return frozenset(
            value for value in values if isinstance(value, (int, str, date)) and fits(value, type_)
        )

    def micros(self, at: int) -> frozenset[int] | None:
        """See :class:`~airflow_hive_opt.local_task.engine.Keys`."""
        if _type(self.rows.schema.fields[at]) != TIMESTAMP:
            return None
        rows = self.frame.selectExpr(f"unix_micros(c{at})").collect()
        return frozenset(row[0] for row in rows if row[0] is not None)

    def tuples_of(self, types: Mapping[int, str]) -> frozenset[tuple[Value, ...]] | None:
        """See :class:`~airflow_hive_opt.local_task.engine.Keys`."""
        fields = [_type(field) for field in self.rows.schema.fields[:-1]]
        if any(
            _kind(type_) is None or _kind(type_) != _kind(fields[at]) for at, type_ in types.items()
        ):
            return None
        # a NULL in any column makes the key equal to nothing
        keys = self.frame.where(" AND ".join(f"c{n} IS NOT NULL" for n in range(len(fields))))
        selected = [f"unix_micros(c{n})" if types[n] == TIMESTAMP else f"c{n}" for n in types]
        rows = map(tuple, keys.selectExpr(*selected).collect())
        return frozenset(row for row in rows if all(map(fits, row, types.values())))

    def listed(self) -> ListedKeys | None:
        """The keys as texts; ``None`` if a column has a type without a :func:`family`."""
        types = [_type(field) for field in self.rows.schema.fields[:-1]]
        if None in self._families[:-1]:
            return None
        keys, numbers = [row[:-1] for row in self._values], [row[-1] for row in self._values]
        counts = (number for number in numbers if isinstance(number, int))
        return ListedKeys.of(types, keys, counts, self.exact)

    @cached_property
    def _families(self) -> list[str | None]:
        return [family(_type(field)) for field in self.rows.schema.fields]

    @cached_property
    def _values(self) -> list[tuple[Value | None, ...]]:
        return self.rows.values(self._families)


def _kind(type_: str) -> str | None:
    """The family of types that compare exactly in a table that keeps its own list of files."""
    return type_ if type_ == TIMESTAMP else family(type_)


def _type(field: object) -> str:
    return str(field.dataType.simpleString()).lower()  # type: ignore[attr-defined]
