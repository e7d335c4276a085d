"""The definitions of a session on a Spark Connect server, over SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.spark.catalog.definitions import (
    GLOBAL_TEMPORARY,
    TEMPORARY_DATABASES,
    UNKNOWN,
    Definition,
)
from airflow_hive_opt.spark.catalog.listed_functions import ListedFunctions
from airflow_hive_opt.statement.identifiers import quote_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A line of DESCRIBE FUNCTION with a heading; a line without one continues the text before.
_LINE = re.compile(r"(\w[\w ]*):\s*(.*)", re.DOTALL)
_CREATED = "Create Time"
# A name before a parenthesis, but for one that follows a dot.
_CALLED = re.compile(r"(?<![\w`.])`?(\w+)`?\s*\(")
_QUERY_OR_COMMENT = re.compile(r"\b(select|from|with|table)\b|/\*|--", re.IGNORECASE)


class ConnectDefinitions(ListedFunctions):
    """The :class:`~airflow_hive_opt.spark.catalog.definitions.Definitions` of a Connect session.

    The server does not tell in which database a function looks up unqualified names. Nothing
    therefore identifies a function that has such names, or a query. ``description`` gives what
    DESCRIBE AS JSON says of a table or view. ``temporary_views`` are the names of the session's.
    """

    def __init__(
        self,
        session: SparkSession,
        description: Callable[[str], Mapping[str, Any] | None],
        temporary_views: Collection[str],
    ) -> None:
        super().__init__()
        self._session = session
        self._description = description
        self._temporary_views = temporary_views

    def temporary_view(self, name: str) -> Definition | None:
        """See :class:`~airflow_hive_opt.spark.catalog.definitions.Definitions`."""
        *qualifier, short = name.split(".")
        if tuple(qualifier) in TEMPORARY_DATABASES:
            return self._view(short) if short in self._temporary_views else None
        return self._view(name) if qualifier == [GLOBAL_TEMPORARY] else None

    def view(self, name: str) -> Definition | None:
        """See :class:`~airflow_hive_opt.spark.catalog.definitions.Definitions`."""
        return self._view(name)

    def variables(self, words: Collection[str]) -> dict[str, str]:  # noqa: ARG002
        """Empty: over Spark Connect, keys do not come from a query that reads a variable."""
        return {}

    @cached_property
    def _built_in(self) -> frozenset[str]:
        return frozenset(self._listed("SHOW SYSTEM FUNCTIONS"))

    @cached_property
    def _databases(self) -> frozenset[str]:
        return frozenset(self._listed("SHOW DATABASES"))

    @cached_property
    def _temporary(self) -> frozenset[str]:
        """The temporary functions: their names are the ones without a database."""
        return frozenset(name for name in self._listed("SHOW USER FUNCTIONS") if "." not in name)

    def _list_functions(self, database: str) -> list[str]:
        listed = self._listed(f"SHOW USER FUNCTIONS IN {quote_table(database)}")
        return [name.rpartition(".")[2] for name in listed if "." in name]

    def _listed(self, show: str) -> list[str]:
        return [str(name).lower() for (name,) in self._session.sql(show).collect()]

    def _function(self, name: str, database: str | None = None) -> Definition:
        full = quote_table(f"{database}.{name}" if database else name)
        rows = self._session.sql(f"DESCRIBE FUNCTION EXTENDED {full}").collect()
        told = _headed([str(line) for (line,) in rows])
        body, arguments = told.get("Body", ""), told.get("Input", "")
        if not body or self._has_unqualified_names(f"{body}; {arguments}"):
            return UNKNOWN
        known = (f"{heading} {text}" for heading, text in told.items() if heading != _CREATED)
        return Definition.of(known, f"SELECT {body}", ("",), arguments)

    def _has_unqualified_names(self, text: str) -> bool:
        called = (name.lower() for name in _CALLED.findall(text))
        return bool(_QUERY_OR_COMMENT.search(text)) or not self._built_in.issuperset(called)

    def _view(self, name: str) -> Definition | None:
        told = self._description(name)
        if told is None or told.get("type") != "VIEW":
            return None
        text = told.get("view_text")
        if text is None:
            return UNKNOWN
        namespace = str(told.get("view_catalog_and_namespace", ""))
        shown = (f"{key} {told[key]}" for key in sorted(told) if key.startswith("view_"))
        return Definition.of(shown, text, (namespace.rpartition(".")[2],))


def _headed(lines: Collection[str]) -> dict[str, str]:
    """The texts of DESCRIBE FUNCTION by their headings.

    >>> _headed(["Configs:       a=1", "               b=2", "Body:          x + 1"])
    {'Configs': 'a=1               b=2', 'Body': 'x + 1'}
    """
    found: dict[str, str] = {}
    last = ""
    for line in lines:
        if heading := _LINE.fullmatch(line):
            last, text = heading.groups()
        else:
            text = found.get(last, "") + line
        found[last] = text
    return found
