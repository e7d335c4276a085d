"""A table that keeps its own list of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from airflow_hive_opt.documents.descriptor import Snapshot
from airflow_hive_opt.statement.catalog import Column, Table

if TYPE_CHECKING:
    from airflow_hive_opt.worker.files.rows import Rows


@dataclass(frozen=True)
class LakeRows:
    """Rows of a table. ``partition_columns`` have the types of the values that are texts.

    ``snapshot`` is the one that was read, if the map join can look up the current one by its name.
    """

    rows: Rows
    partition_columns: tuple[Column, ...] = ()
    snapshot: Snapshot | None = None


@dataclass(frozen=True)
class LakeState:
    """The facts of a table as it was looked up, without its columns.

    ``snapshot`` or ``folders`` are by what the map join notices a change, as in
    :class:`LakeRows`.
    """

    facts: Mapping[str, str]
    snapshot: Snapshot | None = None
    folders: tuple[tuple[str, str], ...] = ()


class LakeTable(Protocol):
    """One table at the snapshot that it had when it was looked up."""

    @property
    def described(self) -> Table:
        """The table as the planner sees it."""

    @property
    def uuid(self) -> str:
        """The table's own ID, which another table of its name does not have."""

    def state(self) -> LakeState:
        """What differs once another task would read other rows."""

    def read(self, names: Sequence[str], most_bytes: int) -> LakeRows:
        """The rows with the columns ``names``.

        Raises :class:`~airflow_hive_opt.worker.unanswered.Unanswered` if Spark may read others, or
        if the files have more than ``most_bytes``.
        """
