"""The protocol of a table format that keeps its own list of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from airflow_hive_opt.documents.descriptor import PlannedFiles, RowFilter
from airflow_hive_opt.spark.catalog.lakes.place import Place
from airflow_hive_opt.statement.catalog import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class LakeFormat(Protocol):
    """One format. ``loaded`` is the table that Spark's catalog loads, an object of the JVM.

    Over Spark Connect, ``loaded`` is a
    :class:`~airflow_hive_opt.spark.catalog.lakes.connect_table.ConnectTable`.

    The methods may raise the errors of Spark, of the JVM and of py4j.
    """

    name: str
    """As in :mod:`airflow_hive_opt.statement.lake_formats`."""
    reads_paths: bool
    """Whether the format's name before a path, as in ``delta.`/data/orders` ``, names a table."""
    plans_files: bool
    """Whether the plan of a SELECT has the files of its scans before it runs."""

    def is_entry(self, metadata: Any) -> bool:
        """Whether Spark's metadata of a table of the metastore names the format."""

    def is_loaded(self, session: SparkSession, loaded: Any) -> bool:
        """Whether the table is of this format."""

    def described(
        self, session: SparkSession, place: Place, table: Table, loaded: Any
    ) -> Table | None:
        """``table``, which has name, columns and location, with what the format knows of it.

        That is its size, the columns by which it groups its files, and how it is partitioned. A
        table that can't be pruned gets no provider. ``None`` if there is no such table.
        """

    def of_entry(self, session: SparkSession, table: Table) -> Table:
        """A table whose metastore entry names the format, but which the format did not load."""

    def most_values(self, session: SparkSession, table: Table, column: str) -> int:
        """The length of a list up to which the format compares each value with a file's values.

        More values become ranges.
        """

    def expression(self, table: Table, filters: Sequence[tuple[str, RowFilter]]) -> str | None:
        """Conditions on columns of one table for :meth:`counted`, ``None`` if it can't count.

        Each pair begins with the name of a column in the table.
        """

    def counted(
        self, session: SparkSession, loaded: Any, found: PlannedFiles
    ) -> PlannedFiles | None:
        """``found`` with the files that its expression leaves now; ``None`` if not known."""

    def all_files(self, loaded: Any) -> tuple[int, int] | None:
        """The numbers of the current data files and of their bytes; ``None`` if not known."""

    def version(self, session: SparkSession, place: Place, loaded: Any) -> str | None:
        """The current version that a statement can name; ``None`` if there is none.

        There is none either if the name of the place is itself that of a version.
        """

    def table_id(self, loaded: Any) -> str:
        """What differs for a table that is made again under the same name.

        Empty if the versions of such a table differ themselves.
        """

    def state(self, loaded: Any) -> Mapping[str, str]:
        """What changes with every change of the table, beside its :meth:`version`.

        Empty if nothing is known to do so.
        """

    def as_of(self, version: str) -> str:
        """The clause that reads a table at the version."""

    def has_columns_of(self, session: SparkSession, loaded: Any, version: str) -> bool:
        """Whether the table, read at the version, has the columns that it has now."""
