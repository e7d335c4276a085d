"""The functions that a text may name, for sessions in this process and over Spark Connect."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator

from pyspark.errors import AnalysisException

from airflow_hive_opt.spark.catalog.definitions import UNKNOWN, Definition
from airflow_hive_opt.spark.catalog.table_facts import NOT_FOUND
from airflow_hive_opt.spark.session.spark_compat import condition_of


class ListedFunctions(ABC):
    """Lists the functions of a database once. All names are in lower case, without database."""

    def __init__(self) -> None:
        self._persistent: dict[str, frozenset[str]] = {}

    def functions(self, words: Collection[str], database: str) -> Iterator[tuple[str, Definition]]:
        """See :class:`~airflow_hive_opt.spark.catalog.definitions.Definitions`."""
        for name in sorted(self._temporary.intersection(words)):
            # a session may prefer either of the two
            yield name, UNKNOWN if name in self._built_in else self._function(name)
        for of in sorted({database, *self._databases.intersection(words)} - {""}):
            for name in sorted(self._functions_of(of).intersection(words)):
                yield f"{of}.{name}", self._function(name, of)

    def _functions_of(self, database: str) -> frozenset[str]:
        if database not in self._persistent:
            try:
                self._persistent[database] = frozenset(self._list_functions(database))
            except AnalysisException as error:  # what looks like a database is none
                if condition_of(error) not in NOT_FOUND:
                    raise
                self._persistent[database] = frozenset()
        return self._persistent[database]

    @property
    @abstractmethod
    def _built_in(self) -> frozenset[str]:
        """Spark's own functions."""

    @property
    @abstractmethod
    def _temporary(self) -> frozenset[str]:
        """The session's temporary functions."""

    @property
    @abstractmethod
    def _databases(self) -> frozenset[str]:
        """The databases of the session's catalog."""

    @abstractmethod
    def _list_functions(self, database: str) -> Iterable[str]:
        """The functions of a database; raises ``AnalysisException`` if it does not exist."""

    @abstractmethod
    def _function(self, name: str, database: str | None = None) -> Definition:
        """The definition of a temporary function, or of one in ``database``."""
