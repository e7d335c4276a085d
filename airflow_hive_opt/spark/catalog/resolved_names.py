"""Everything that the names in a statement stand for, also below views and inside functions.

Another session reads the statement in the same way only if all of it is the same there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from airflow_hive_opt.documents.binding import TEMPORARY_VIEW, VIEW
from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.spark.catalog.definitions import (
    GLOBAL_TEMPORARY,
    Definition,
)
from airflow_hive_opt.spark.catalog.session_catalog import SessionCatalog
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.parse import why_unsupported
from airflow_hive_opt.statement.tables import references
from airflow_hive_opt.statement.words import words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

# The user, by three names, and Spark's version.
_OF_THE_SESSION = ("current_user", "session_user", "user", "version")
_NO_ANSWER = (PySparkException, Py4JJavaError)


@dataclass(frozen=True)
class ResolvedNames:
    """The names in a text, each with what identifies it.

    ``tables`` has locations and, for views, digests; a value is ``None`` if the lookup fails or the
    table has no location. ``functions`` and ``variables`` have digests. ``unidentified`` has the
    views and functions that may mean something else in another session without a visible
    difference. ``missing`` has the names of tables that are not found, such as those of paths.
    ``texts`` are the text itself and the bodies of the views and functions.
    """

    tables: Mapping[str, str | None]
    functions: Mapping[str, str | None]
    variables: Mapping[str, str]
    unidentified: frozenset[str]
    missing: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Text:
    """A piece of SQL, and the database of its unqualified names.

    ``of`` is the view or function whose body it is, empty for the statement itself. ``arguments``
    is the declaration of a function's arguments.
    """

    query: str
    database: str
    of: str = ""
    arguments: str = ""


class Names:
    """Looks up names of a session; use it for one run."""

    def __init__(self, session: SparkSession, catalog: SessionCatalog) -> None:
        self._session = session
        self._catalog = catalog
        self._database = str(session.catalog.currentDatabase())
        self._definitions = catalog.definitions()

    def resolve(self, texts: Iterable[str]) -> ResolvedNames:
        """Everything that the names in the texts stand for, except tables that do not exist.

        If functions can't be looked up, all that may be one are unidentified.
        """
        located: dict[str, str | None] = {}
        functions: dict[str, str | None] = {}
        variables: dict[str, str] = {}
        unidentified: set[str] = set()
        seen: set[_Text | str] = set()
        bodies: set[str] = set()
        read: set[tuple[str, ...]] = set()  # for each reference, the names it may stand for
        waiting: list[_Text | str] = [_Text(text, self._database) for text in texts]
        while waiting:
            one = waiting.pop()
            if one in seen:
                continue
            seen.add(one)
            if isinstance(one, _Text):
                calls = f"{one.query} {one.arguments}"
                bodies.add(calls)
                named = words(calls)
                variables |= self._definitions.variables(named) | self._of_the_session(named)
                found = self._functions(named, one.database, unidentified)
                functions |= {name: definition.digest for name, definition in found}
                tables = _tables_in(one)
                waiting += sorted({name for names in tables or () for name in names})
                read |= tables or set()
                if tables is None:
                    unidentified.add(one.of or "statement")
            else:
                found = list(self._view(one, located))
            for name, definition in found:
                if definition.digest is None:
                    unidentified.add(name)
                waiting += (
                    _Text(definition.query, inside, name, definition.arguments)
                    for inside in definition.databases
                )
        missing = (names[0] for names in read if located.keys().isdisjoint(names))
        return ResolvedNames(
            *(located, functions, variables),
            *map(frozenset, (unidentified, missing, bodies)),
        )

    def _functions(
        self, names: frozenset[str], database: str, unidentified: set[str]
    ) -> list[tuple[str, Definition]]:
        try:
            return list(self._definitions.functions(names, database))
        except _NO_ANSWER as error:  # a vendor's metastore may have no functions
            log.warning("the functions of %s can't be looked up: %s", database, in_words(error))
            unidentified |= names
            return []

    def _of_the_session(self, names: frozenset[str]) -> dict[str, str]:
        """Digests of what Spark's functions about the session return, for those in ``names``.

        They may be called without a parenthesis.
        """
        found = {}
        for function in names.intersection(_OF_THE_SESSION):
            try:
                ((value,),) = self._session.sql(f"SELECT {function}()").collect()
            except AnalysisException:  # before Spark 4.0 there is no session_user
                continue
            found[function] = sha256(str(value).encode()).hexdigest()
        return found

    def _view(self, name: str, located: dict[str, str | None]) -> Iterator[tuple[str, Definition]]:
        """Stores the location of a table or the digest of a view; returns a view's definition."""
        try:
            if (view := self._definitions.temporary_view(name)) is not None:
                located[name] = f"{TEMPORARY_VIEW}{view.digest or ''}"
                yield name, view
            elif _is_temporary(name):
                return
            elif (location := self._catalog.location(name)) is not None:
                located[name] = location
            elif (view := self._definitions.view(name)) is not None:
                located[name] = f"{VIEW}{view.digest or ''}"
                yield name, view
            elif self._catalog.table(name) is not None:
                located[name] = None
        except (PlanError, *_NO_ANSWER):  # the planner or the statement itself gives the reason
            located[name] = None


def _is_temporary(name: str) -> bool:
    """Whether only a temporary view can have the name.

    >>> _is_temporary("d"), _is_temporary("global_temp.d"), _is_temporary("session.d")
    (True, True, False)
    """
    return name.rpartition(".")[0] in ("", GLOBAL_TEMPORARY)


def _tables_in(text: _Text) -> set[tuple[str, ...]] | None:
    """The names of tables and views that each reference may stand for; ``None`` if not known.

    A name without a database may be a temporary view or a table of the current database.
    """
    try:
        if why_unsupported(text.query):
            return None
        named = {reference.name.lower() for reference in references(text.query)}
    except (PlanError, RecursionError):  # Spark may support syntax that the planner does not
        return None
    if not text.database and any("." not in name for name in named):
        return None
    return {(name,) if "." in name else (name, f"{text.database}.{name}") for name in named}
