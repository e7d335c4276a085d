"""Loads a table from its catalog: through the session's JVM, or over Spark Connect through SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hive_opt.spark.catalog.lakes.connect_table import ConnectTable, table_over_sql
from airflow_hive_opt.spark.catalog.lakes.place import Place
from airflow_hive_opt.spark.catalog.table_facts import columns_of
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.java_classes import java_class
from airflow_hive_opt.spark.session.spark_compat import active

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.statement.catalog import Column

_IDENTIFIER = "org.apache.spark.sql.connector.catalog.Identifier"


def load(session: SparkSession, place: Place) -> Any:
    """Spark's table, an object of the JVM, or a :class:`ConnectTable`; raises Spark's errors."""
    return table_over_sql(session, place) if is_remote(session) else _through_jvm(session, place)


def columns_and_location(loaded: Any) -> tuple[tuple[Column, ...], str | None]:
    """The columns of a loaded table, and where its data is."""
    if isinstance(loaded, ConnectTable):
        return loaded.columns, loaded.location
    location = loaded.properties().get("location")
    return tuple(columns_of(loaded.schema())), None if location is None else str(location)


def _through_jvm(session: SparkSession, place: Place) -> Any:
    gateway: Any = session.sparkContext._gateway
    jvm: Any = session._jvm
    namespace = gateway.new_array(java_class(jvm, "java.lang.String"), len(place.namespace))
    for at, part in enumerate(place.namespace):
        namespace[at] = part
    identifier = java_class(jvm, _IDENTIFIER).of(namespace, place.name)
    manager: Any = session._jsparkSession.sessionState().catalogManager()
    with active(session):  # Spark reads a catalog's settings from that session
        return manager.catalog(place.catalog).loadTable(identifier)
