"""Descriptions of tables for the planner, and a catalog that is read from a JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True)
class Column:
    """A column and its Hive type, both lower case: ``Column("ds", "string")``."""

    name: str
    type: str


@dataclass(frozen=True)
class Buckets:
    """CLUSTERED BY ``columns`` [SORTED BY ``sort``] INTO ``count`` BUCKETS.

    ``sort`` has pairs of column and ``asc`` or ``desc``. ``by_spark`` says that Spark wrote the
    buckets: its hash function differs from Hive's.
    """

    columns: tuple[str, ...]
    count: int
    sort: tuple[tuple[str, str], ...] = ()
    by_spark: bool = False


@dataclass(frozen=True)
class Partition:
    """A partition: values in the order of the partition columns, and numbers of bytes, files, rows.

    ``files`` and ``rows`` are ``None`` if they are not known.
    """

    values: tuple[str, ...]
    total_bytes: int = 0
    files: int | None = None
    rows: int | None = None


@dataclass(frozen=True)
class ViewDefinition:
    """A view's query: its text, the database of its unqualified names, its output columns."""

    text: str
    database: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Underlying:
    """The partitioned table that a view reads, with pairs of a view column and its column."""

    table: Table
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """A table or view as a catalog describes it.

    - ``total_bytes`` is the size of the data, if it is known without counting.
    - ``partitions_in_metastore`` is false if the metastore does not manage the partition columns.
    - ``by_serde`` is true if the table is read by a SerDe. The value of the NULL partition is then
      the partition's name.
    - ``buckets``, ``partitions``, ``rows``, ``files`` and ``format`` are inputs of Hive's stages,
      if they are known.
    - ``view`` is the query of a view for Hive's plan, empty if the catalog does not have it.
      ``definition`` is the one for partition pruning. Pruning stores the table that it finds there
      in ``underlying``.
    - ``location`` is the URI of the table's data.
    - ``distinct`` has pairs of a column and its number of distinct values, from statistics.
    - ``provider`` is the format of a table that keeps its own list of files:
      ``iceberg``, ``delta`` or ``hudi``. It is empty for other tables.
    - ``clustered_by`` are the data columns by whose values such a table groups its files. A
      condition on them skips files. ``partitioned_by`` are those of them from whose values the
      table makes its partitions; the others are columns of its sort order.
    - ``indexed`` are the data columns with a key index, which says which files hold a key.
    - ``bounded`` are the data columns of which the metadata has each file's lowest and highest
      value. A condition on them skips files if the rows were written in their order.
    - ``transactional`` says that Hive's transactions decide which of its files count (ACID).
    - ``partition_fields`` has pairs of a column and the field of the table's own metadata that has
      its value for every file, whichever way the table was partitioned when it was written.
      ``partition_times`` has the fields that count years, months, days or hours of a column: the
      column, the field, and ``year``, ``month``, ``day`` or ``hour``.
    """

    name: str
    columns: tuple[Column, ...]
    partition_columns: tuple[Column, ...] = ()
    total_bytes: int | None = None
    partitions_in_metastore: bool = True
    by_serde: bool = False
    buckets: Buckets | None = None
    partitions: tuple[Partition, ...] | None = None
    rows: int | None = None
    files: int | None = None
    format: str = ""
    view: str | None = None
    definition: ViewDefinition | None = None
    underlying: Underlying | None = None
    location: str | None = None
    distinct: tuple[tuple[str, int], ...] = ()
    provider: str = ""
    clustered_by: tuple[str, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    indexed: tuple[str, ...] = ()
    bounded: tuple[str, ...] = ()
    partition_fields: tuple[tuple[str, str], ...] = ()
    partition_times: tuple[tuple[str, str, str], ...] = ()
    transactional: bool = False

    @property
    def scanned(self) -> Table:
        """The table whose partitions a scan reads: a view's underlying table, or this table."""
        return self.underlying.table if self.underlying else self

    @property
    def pruning_columns(self) -> tuple[Column, ...]:
        """The columns by whose values a scan can leave data unread.

        They are the partition columns, or the columns by which the table groups its files, and
        those with a key index.
        """
        named = {*self.clustered_by, *self.indexed}
        clustered = (column for column in self.columns if column.name in named)
        return self.partition_columns or tuple(clustered)

    @property
    def visible_pruning_columns(self) -> tuple[tuple[str, Column], ...]:
        """Pairs of a name in this table or view and its column in the scanned table."""
        if self.underlying is None:
            return tuple((column.name, column) for column in self.pruning_columns)
        columns = {column.name: column for column in self.underlying.table.pruning_columns}
        return tuple((name, columns[column]) for name, column in self.underlying.columns)

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """Data columns, then partition columns, in the order of ``SELECT *``."""
        return self.columns + self.partition_columns

    def distinct_keys(self, columns: Iterable[str]) -> int | None:
        """A lower bound of the distinct tuples of the columns' values, ``None`` if not known."""
        known = dict(self.distinct)
        return max((known[name] for name in columns if name in known), default=None)

    @property
    def short_name(self) -> str:
        """The name without its database."""
        return self.name.rpartition(".")[2]


class CatalogFileError(ValueError):
    """A catalog file that can't be read; the message says what is wrong."""


class Catalog(Protocol):
    """The lookup of tables by name."""

    def table(self, name: str) -> Table | None:
        """Returns the table ``name`` (``db.table`` or ``table``, in any case), or ``None``."""


@dataclass(frozen=True)
class JsonCatalog:
    """The tables of a ``TABLES.json`` document; unqualified names are in ``default``."""

    tables: Mapping[str, Table]

    def table(self, name: str) -> Table | None:
        """See :class:`Catalog`."""
        key = name.lower()
        return self.tables.get(key if "." in key else f"default.{key}")

    def names(self) -> dict[str, list[str]]:
        """The names of the tables in each database."""
        found: dict[str, list[str]] = {}
        for name in self.tables:
            database, _, short = name.rpartition(".")
            found.setdefault(database, []).append(short)
        return found

    @classmethod
    def of(cls, tables: Iterable[Table]) -> JsonCatalog:
        """A catalog of the given tables."""
        return cls({table.name: table for table in tables})

    @classmethod
    def of_documents(cls, documents: Iterable[Mapping[str, Any]]) -> JsonCatalog:
        """A catalog of the objects in a ``TABLES.json`` document.

        Raises ``KeyError``, ``TypeError``, ``ValueError`` or ``AttributeError`` for a wrong object.
        """
        return cls.of(map(_table, documents))

    @classmethod
    def read(cls, path: Path) -> JsonCatalog:
        """Reads a file with ``{"tables": [...]}``; raises :class:`CatalogFileError`."""
        try:
            return cls.of_documents(json.loads(path.read_text())["tables"])
        except OSError as error:
            raise CatalogFileError(f"can't read the catalog {path}: {error.strerror}") from error
        except json.JSONDecodeError as error:
            raise CatalogFileError(f"the catalog {path} is not JSON: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CatalogFileError(
                f"the catalog {path} has no valid {error}: it must contain "
                '{"tables": [{"name": "db.table", "columns": [["name", "type"], ...], '
                '"partition_columns": [...]}]}'
            ) from error


def _table(document: Mapping[str, Any]) -> Table:
    name = str(document["name"]).lower()
    view = _view(document.get("view"))
    columns = _columns(document.get("columns") or () if view == "" else document["columns"])
    names = tuple(column.name for column in columns)
    return Table(
        name=name if "." in name else f"default.{name}",
        columns=columns,
        partition_columns=_columns(document.get("partition_columns") or ()),
        total_bytes=None if (size := document.get("total_bytes")) is None else int(size),
        buckets=_buckets(document.get("buckets")),
        partitions=_partitions(document.get("partitions")),
        rows=_count(document.get("rows")),
        files=_count(document.get("files")),
        format=str(document.get("format") or ""),
        view=view,
        definition=ViewDefinition(view, "default", names) if view else None,
        distinct=tuple((k.lower(), int(v)) for k, v in (document.get("distinct") or {}).items()),
        transactional=document.get("transactional") is True,
    )


def _buckets(document: Mapping[str, Any] | None) -> Buckets | None:
    if not document:
        return None
    sort = (
        (key, "asc") if isinstance(key, str) else (str(key[0]), str(key[1]))
        for key in document.get("sort") or ()
    )
    columns = tuple(name.lower() for name in document["columns"])
    return Buckets(
        columns,
        int(document["count"]),
        tuple((name.lower(), way.lower()) for name, way in sort),
        by_spark=document.get("engine") == "spark",
    )


def _partitions(documents: Iterable[Mapping[str, Any]] | None) -> tuple[Partition, ...] | None:
    """Partitions that have ``values``, or a ``spec`` in the metastore's form: ``ds=1/hr=2``."""
    if documents is None:
        return None
    found = []
    for document in documents:
        values = document.get("values") or [
            part.partition("=")[2] for part in document["spec"].split("/")
        ]
        found.append(
            Partition(
                tuple(map(str, values)),
                int(document.get("bytes") or 0),
                _count(document.get("files")),
                _count(document.get("rows", (document.get("stats") or {}).get("numRows"))),
            )
        )
    return tuple(found)


def _view(view: object) -> str | None:
    """The view's query: ``None`` for a table, empty for a view without its query."""
    if view is None or view is False:
        return None
    return view if isinstance(view, str) and view.strip() else ""


def _count(files: object) -> int | None:
    return len(files) if isinstance(files, list) else int(str(files)) if files is not None else None


def _columns(pairs: Iterable[tuple[str, str]]) -> tuple[Column, ...]:
    return tuple(Column(name.lower(), type_.lower()) for name, type_ in pairs)
