"""A table's place in one of Spark's catalogs, and the table that Spark loads from there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.spark.session.spark_compat import active

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SESSION_CATALOG = "spark_catalog"


@dataclass(frozen=True)
class Place:
    """A table's catalog, its namespace there, and its name, in the case of the statement."""

    catalog: str
    namespace: tuple[str, ...]
    name: str

    @classmethod
    def of(cls, full_name: str) -> Place:
        """The place of a table by its :attr:`full_name`.

        >>> Place.of("spark_catalog.delta./data/orders.d").name
        '/data/orders.d'
        """
        # the session's catalog has namespaces of one part, and names that are paths
        parts = 2 if full_name.startswith(f"{SESSION_CATALOG}.") else -1
        catalog, *namespace, name = full_name.split(".", parts)
        return cls(catalog, tuple(namespace), name)

    @property
    def full_name(self) -> str:
        """``catalog.namespace.name``."""
        return ".".join((self.catalog, *self.namespace, self.name))

    @property
    def is_dotted(self) -> bool:
        """Whether a part has a dot, so that the full name can't be taken apart again."""
        return Place.of(self.full_name) != self


def load(session: SparkSession, place: Place) -> Any:
    """Spark's table, an object of the JVM; raises Spark's errors."""
    gateway: Any = session.sparkContext._gateway
    jvm: Any = session._jvm
    namespace = gateway.new_array(jvm.java.lang.String, len(place.namespace))
    for at, part in enumerate(place.namespace):
        namespace[at] = part
    identifier = jvm.org.apache.spark.sql.connector.catalog.Identifier.of(namespace, place.name)
    manager: Any = session._jsparkSession.sessionState().catalogManager()
    with active(session):  # Spark reads a catalog's settings from that session
        return manager.catalog(place.catalog).loadTable(identifier)
