"""The protocol of the engine that reads keys for the local task: Spark, or the worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Protocol

from airflow_hive_opt.metastores.partitions import Partition, Value
from airflow_hive_opt.pruning.decisions import KeySource, Layer
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.statement.catalog import Table

NamesOf = Callable[[Table], Sequence[Partition]]
"""Lists a table's partitions by their names; raises ``MetastoreError``."""


class Keys(Protocol):
    """The distinct keys of a source.

    ``exact`` is false if there may be keys that the source does not have.
    """

    @property
    def source(self) -> KeySource:
        """Where the keys come from."""

    @property
    def exact(self) -> bool:
        """Whether the source has each of the keys."""

    @property
    def count(self) -> int:
        """The number of distinct keys."""

    @property
    def unique(self) -> bool:
        """Whether every key belongs to one row of the source."""

    def of(self, source: KeySource) -> Keys:
        """The same keys for another source with the same key query."""

    def tuples(self, types: Sequence[str]) -> frozenset[tuple[Value, ...]] | None:
        """The keys as typed tuples; ``None`` if they can't be compared without a cast.

        ``types`` are those of ``source.partition_columns``. Keys outside the range of these types
        are left out. Keys with a NULL are left out too, since NULL equals nothing.
        """

    def column(self, at: int, type_: str) -> frozenset[int | str | date] | None:
        """The values of one key column that fit a column of ``type_``, without NULL.

        ``None`` if they can't be compared without a cast.
        """

    def micros(self, at: int) -> frozenset[int] | None:
        """The values of a TIMESTAMP column, without NULL, in microseconds since 1970 in UTC.

        ``None`` if the column has another type.
        """

    def tuples_of(self, types: Mapping[int, str]) -> frozenset[tuple[Value, ...]] | None:
        """Like :meth:`tuples`, but of some columns only, which may be TIMESTAMP columns.

        ``types`` maps the position of a key's column to the type of the scan's column. A TIMESTAMP
        is the number of microseconds since 1970 in UTC.
        """


class Engine(Protocol):
    """Reads keys and evaluates conditions."""

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """The errors that leave a scan unpruned but do not fail the run."""

    def collect(self, source: KeySource, names: NamesOf) -> Keys | Reason:
        """The source's keys, or the reason why they can't be used; raises :attr:`failures`."""

    def collect_together(
        self, sources: Sequence[KeySource], names: NamesOf
    ) -> Sequence[Keys | Reason | Exception]:
        """The keys of several sources, read at the same time; a failed source has its error."""

    def fulfilling(
        self,
        table: Table,
        layers: Sequence[Layer],
        partitions: Sequence[Partition],
        conditions: Sequence[str],
        keys: Keys | None = None,
    ) -> list[Partition] | None:
        """The partitions for which all ``conditions`` are true, together with one of the ``keys``.

        Includes every partition whose name does not determine its value. Returns ``None`` if the
        conditions are not deterministic. The keys must be this engine's own. Raises
        :attr:`failures`.
        """
