"""A table's place in one of Spark's catalogs."""

from __future__ import annotations

from dataclasses import dataclass

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
