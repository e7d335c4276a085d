"""The local task's hash tables: rows of small tables that keys and map join both take.

Where one application runs both stages, a small table that gives keys is read once. Its rows stay
with the driver, as local data under a temporary view, and the statement reads the view.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from airflow_hive_opt.planner.pruning import HashTable
from airflow_hive_opt.spark.connect import is_remote
from airflow_hive_opt.spark.keys import is_stable, local_relation, planned_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

# Rows that Spark hands to a query as part of its plan, without a job.
MAX_ROWS = 10_000


@dataclass(frozen=True)
class HeldRows:
    """A table reference of the statement, and the view that holds what it reads there."""

    reference: tuple[int, int]
    text: str
    alias: str
    aliased: bool
    view: str


class HashTables:
    """The rows held for one statement; a context manager that forgets them at its end."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._frames: dict[tuple[int, int], tuple[HashTable, DataFrame | None]] = {}
        self._held: list[HeldRows] = []

    def __enter__(self) -> HashTables:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for held in self._held:
            self._session.catalog.dropTempView(held.view)

    @property
    def held(self) -> tuple[HeldRows, ...]:
        """Every reference whose rows are here."""
        return tuple(self._held)

    def rows(self, table: HashTable, parameters: Mapping[str, object]) -> DataFrame | None:
        """The table's rows as local data, or ``None`` where there are too many to hold.

        Nor are any held for Spark Connect, where they would travel each time.

        Of one reference only the first choice of rows is held.
        """
        at = (table.relation.reference.start, table.relation.reference.stop)
        if at not in self._frames:
            self._frames[at] = table, self._read(table, at, parameters)
        first, frame = self._frames[at]
        return frame if first == table else None

    def _read(
        self, table: HashTable, at: tuple[int, int], parameters: Mapping[str, object]
    ) -> DataFrame | None:
        frame = self._session.sql(table.sql, args=dict(parameters))
        if is_remote(frame) or not is_stable(frame):
            return None
        with planned_once(self._session):
            held, count = local_relation(self._session, frame.coalesce(1).limit(MAX_ROWS + 1))
        if count > MAX_ROWS:
            return None
        relation = table.relation
        view = f"__hash_table_{len(self._held)}"
        held.createOrReplaceTempView(view)
        self._held.append(HeldRows(at, relation.text, relation.alias, relation.aliased, view))
        log.info("%d rows of %s are held for the join", count, relation.text)
        return held
