"""How a session reads a statement; a descriptor is bound to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.runtime.binding import VIEW, Binding
from airflow_hive_opt.spark.catalog.connect_catalog import SessionCatalog
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.session_conf import in_effect
from airflow_hive_opt.spark.session.spark_compat import settings_of
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.tables import tables_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Settings whose defaults differ between machines or versions of Spark: the values in effect count.
_IN_EFFECT = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.timestampType",
)
# Settings that change the meaning of names, literals, functions or files: explicit values count.
_CHANGES_VALUES = re.compile(
    r"spark\.sql\.("
    r"(ansi|legacy|parser|decimalOperations|function|collation|jsonGenerator|json|xml|variant|icu"
    r"|lateralColumnAlias|path|functionResolution)\..+|defaultPath"
    r"|(csv\.parser|avro\.datetimeRebase|chunkBase64String).+|columnNameOfCorruptRecord"
    r"|catalog\.\w+(\.(type|warehouse|catalog-impl))?|extensions|variable\.substitute"
    r"|(hive\.convertMetastore|files\.ignore).+"
    r"|parquet\.(binaryAsString|int96|datetimeRebase|inferTimestampNTZ|fieldId\.read).*"
    r"|(charAsVarchar|readSideCharPadding|preserveCharVarcharTypeInfo)"
    r"|(groupBy(Aliases|Ordinal)|orderByOrdinal|mapKeyDedupPolicy)"
    r"|sources\.partitionColumnTypeInference\.enabled"
    r")"
)
_NO_ANSWER = (PySparkException, Py4JJavaError)


def binding(
    session: SparkSession, catalog: SessionCatalog, sql: str, scanned: Iterable[str] = ()
) -> Binding:
    """Returns how the session reads the statement.

    ``scanned`` are the names of further tables, those below views.
    """
    return Binding(
        session.catalog.currentCatalog(),
        session.catalog.currentDatabase(),
        catalog.default_location(),
        dict(_places(catalog, sql, session.catalog.currentDatabase(), scanned)),
        {**_set(session), **{name: in_effect(session, name) for name in _IN_EFFECT}},
    )


def _places(
    catalog: SessionCatalog, sql: str, database: str, scanned: Iterable[str]
) -> Iterator[tuple[str, str | None]]:
    """The names that the statement reads, also through views, each with its location.

    A view has a digest of its text instead. The value is ``None`` if the lookup fails or the
    view's text is not known. A name that does not exist is left out.
    """
    waiting = [*_named(sql, database), *scanned]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            if (location := catalog.location(name)) is not None:
                yield name, location
            elif (table := catalog.table(name)) is not None:
                yield name, _view(table)
                if (view := table.definition) is not None:
                    waiting += _named(view.text, view.database)
        except _NO_ANSWER:  # the statement itself will fail with the reason
            yield name, None


def _named(sql: str, database: str) -> Iterable[str]:
    try:
        return tables_of(sql, database).reads
    except (PlanError, RecursionError):  # Spark may support syntax that the planner does not
        return ()


def _view(table: Table) -> str | None:
    """A digest of a view's text; ``None`` if the text is not known."""
    if (view := table.definition) is None:
        return None
    return VIEW + sha256(f"{view.database} {view.text}".encode()).hexdigest()


def _set(session: SparkSession) -> dict[str, str | None]:
    if is_remote(session):
        found = settings_of(session)
    else:
        conf: Any = session._jsparkSession.sessionState().conf()
        entries = conf.getAllConfs().mkString("\0").split("\0")  # in one call to the JVM
        found = dict(entry.split(" -> ", 1) for entry in entries if " -> " in entry)
    return {name: value for name, value in found.items() if _CHANGES_VALUES.fullmatch(name)}
