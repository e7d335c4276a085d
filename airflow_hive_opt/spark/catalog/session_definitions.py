"""The definitions of a session in this process, from its JVM."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.spark.catalog.definitions import (
    GLOBAL_TEMPORARY,
    TEMPORARY_DATABASES,
    UNKNOWN,
    Definition,
)
from airflow_hive_opt.spark.catalog.listed_functions import ListedFunctions
from airflow_hive_opt.spark.session.spark_compat import to_scala, variables_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SQL_FUNCTION = "sql_udf"
_CREATED = "sqlFunction.createTime"
_OF_VIEWS = "view."


class SessionDefinitions(ListedFunctions):
    """The :class:`~airflow_hive_opt.spark.catalog.definitions.Definitions` of a JVM's session.

    ``metadata`` gives the JVM's description of a table or view.
    """

    def __init__(self, session: SparkSession, metadata: Callable[[str], Any | None]) -> None:
        super().__init__()
        self._metadata = metadata
        self._jvm: Any = session._jvm
        self._state: Any = session._jsparkSession.sessionState()
        self._catalog: Any = self._state.catalog()
        self._external: Any = session._jsparkSession.sharedState().externalCatalog()

    def temporary_view(self, name: str) -> Definition | None:
        """See :class:`~airflow_hive_opt.spark.catalog.definitions.Definitions`."""
        *qualifier, short = name.split(".")
        if tuple(qualifier) in TEMPORARY_DATABASES:
            found = self._catalog.getRawTempView(short)
        elif qualifier == [GLOBAL_TEMPORARY]:
            found = self._catalog.getRawGlobalTempView(short)
        else:
            return None
        return _view(found.get().tableMeta()) if found.isDefined() else None

    def view(self, name: str) -> Definition | None:
        """See :class:`~airflow_hive_opt.spark.catalog.definitions.Definitions`."""
        metadata = self._metadata(name)
        is_view = metadata is not None and str(metadata.tableType().name()) == "VIEW"
        return _view(metadata) if is_view else None

    def variables(self, words: Collection[str]) -> dict[str, str]:
        """See :class:`~airflow_hive_opt.spark.catalog.definitions.Definitions`."""
        manager = variables_of(self._state)
        if manager is None or manager.isEmpty():
            return {}
        found = {}
        for word in sorted(words):
            variable = manager.get(to_scala(self._jvm, [word]))
            if variable.isDefined():
                value = variable.get().currentValue()
                text = f"{value.dataType().sql()} {value.sql()}"
                found[word] = sha256(text.encode(errors="backslashreplace")).hexdigest()
        return found

    @cached_property
    def _databases(self) -> frozenset[str]:
        return frozenset(_names(self._external.listDatabases()))

    @cached_property
    def _built_in(self) -> frozenset[str]:
        analysis = self._jvm.org.apache.spark.sql.catalyst.analysis
        registries = (analysis.FunctionRegistry, analysis.TableFunctionRegistry)
        return frozenset(
            name for each in registries for name in _names(each.builtin().listFunction())
        )

    @cached_property
    def _temporary(self) -> frozenset[str]:
        return frozenset(_names(self._catalog.listTemporaryFunctions()))

    def _list_functions(self, database: str) -> list[str]:
        return _names(self._external.listFunctions(database, "*"))

    def _function(self, name: str, database: str | None = None) -> Definition:
        """The definition as this session has it: it keeps a function that it has loaded."""
        of = self._jvm.scala.Option.apply(database)
        identifier = self._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name, of)
        info = self._catalog.lookupFunctionInfo(identifier)
        if str(info.getSource()) != _SQL_FUNCTION:
            return UNKNOWN
        told = {key: str(value) for key, value in json.loads(str(info.getUsage())).items()}
        told.pop(_CREATED, None)
        expression = f"SELECT {told.get('sqlFunction.expression')}"
        query = told.get("sqlFunction.query") or expression
        arguments = told.get("sqlFunction.inputParam", "")
        lines = (f"{key} {value}" for key, value in told.items())
        return Definition.of(lines, query, (_database(told),), arguments)


def _names(identifiers: Any) -> list[str]:
    """The bare names in a Scala sequence of names or identifiers, in lower case."""
    listed = identifiers.mkString("\0").lower().split("\0")
    return [name.rpartition(".")[2].strip("`") for name in listed if name]


def _view(metadata: Any) -> Definition:
    """The definition of a view that the JVM describes, with the settings that it keeps."""
    text = metadata.viewText()
    if not text.isDefined():
        return UNKNOWN
    entries = metadata.properties().mkString("\0").split("\0")
    kept = [entry for entry in entries if entry.startswith(_OF_VIEWS)]
    namespace = metadata.viewCatalogAndNamespace()
    database = str(namespace.apply(namespace.size() - 1)) if namespace.size() == 2 else ""
    query = str(text.get())
    return Definition.of([query, *kept], query, (database,))


def _database(told: dict[str, str]) -> str:
    """The database in which a function looks up unqualified names."""
    last = int(told.get("catalogAndNamespace.numParts", 0)) - 1
    return told.get(f"catalogAndNamespace.part.{last}", "")
