"""The distinct keys of a source, as Python values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from airflow_hive_opt.metastores.partitions import Value, fits
from airflow_hive_opt.pruning.decisions import KeySource
from airflow_hive_opt.statement.types import family
from airflow_hive_opt.worker.types import SqlType


@dataclass(frozen=True)
class Keys:
    """The distinct keys of a source.

    - ``rows`` has them as DuckDB's Python values, in the order of the source's columns, whose
      ``types`` are Spark's.
    - ``numbers`` has the number of the source's rows with each key.
    - ``exact`` is false if there may be keys that the source does not have.
    - ``functions`` are the functions that the query called, by their names in the statement. They
      must be Spark's own.
    """

    source: KeySource
    rows: tuple[tuple[Any, ...], ...]
    numbers: tuple[int, ...]
    types: tuple[SqlType, ...]
    exact: bool
    functions: frozenset[str] = frozenset()

    def of(self, source: KeySource) -> Keys:
        """See :class:`~airflow_hive_opt.local_task.engine.Keys`."""
        return replace(self, source=source)

    @property
    def count(self) -> int:
        """The number of distinct keys."""
        return len(self.rows)

    @property
    def unique(self) -> bool:
        """Whether every key belongs to one row of the source."""
        return self.exact and all(number == 1 for number in self.numbers)

    def tuples(self, types: Sequence[str]) -> frozenset[tuple[Value, ...]] | None:
        """The keys as typed tuples; ``None`` if they can't be compared without a cast.

        ``types`` are those of ``source.partition_columns``. Keys outside the range of these types
        are left out. Keys with a NULL are left out too, since NULL equals nothing.
        """
        if not self.source.partition_columns:
            return None
        families = [family(type_) for type_ in types]
        if None in families or families != [family(type_.name) for type_ in self.types]:
            return None
        rows = (tuple(zip(row, types, strict=True)) for row in self.rows)
        found = (tuple(v for v, type_ in row if v is not None and fits(v, type_)) for row in rows)
        return frozenset(row for row in found if len(row) == len(types))

    def column(self, at: int, type_: str) -> frozenset[int | str | date] | None:
        """The values of one column that a column of ``type_`` can have, without NULL.

        ``None`` if they can't be compared without a cast.
        """
        if family(type_) is None or family(type_) != family(self.types[at].name):
            return None
        values = (row[at] for row in self.rows)
        return frozenset(value for value in values if value is not None and fits(value, type_))

    def micros(self, at: int) -> frozenset[int] | None:  # noqa: ARG002 - no key is a TIMESTAMP
        """See :class:`~airflow_hive_opt.local_task.engine.Keys`."""
        return None

    def tuples_of(self, types: Mapping[int, str]) -> frozenset[tuple[Value, ...]] | None:
        """See :class:`~airflow_hive_opt.local_task.engine.Keys`."""
        own = {at: family(self.types[at].name) for at in types}
        if any(own[at] is None or own[at] != family(type_) for at, type_ in types.items()):
            return None
        rows = (row for row in self.rows if None not in row)
        found = (tuple(row[at] for at in types) for row in rows)
        return frozenset(row for row in found if all(map(fits, row, types.values())))
