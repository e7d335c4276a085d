"""The relations of FROM, whose columns are translated when an expression reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from airflow_hive_opt.worker.translation.typed import Typed, identifier
from airflow_hive_opt.worker.translation.work import Source, Work
from airflow_hive_opt.worker.types import SqlType, sql_type
from airflow_hive_opt.worker.unanswered import NotUnderstood


class Relation(Protocol):
    """An item of FROM; ``alias`` is its name in the statement, in lower case.

    ``names`` are its columns in order, in lower case, or ``None`` if they are not known. ``why``
    says why its rows can't be read.
    """

    alias: str
    why: NotUnderstood | None

    @property
    def names(self) -> Sequence[str] | None:
        """The columns in order."""

    def column(self, name: str, /) -> Typed:
        """The column of that name, one of ``names``; raises :class:`NotUnderstood`."""

    def sql(self) -> str:
        """The item as SQL of DuckDB, with the columns that were requested."""


class Query(Protocol):
    """A query whose output columns are translated when they are read."""

    @property
    def names(self) -> Sequence[str]:
        """The output columns in lower case; empty for one without a certain name."""

    def type_of(self, at: int) -> SqlType:
        """The type of an output column; from now on the query's text includes the column."""

    def sql(self) -> str:
        """The query in DuckDB; its columns are named ``c0``, ``c1``, ... by their positions."""


class TableRelation:
    """A table or the partition names of one."""

    def __init__(self, work: Work, source: Source, alias: str) -> None:
        self.alias = alias
        self.why = source.why
        self._work = work
        self._source = source
        self.own = work.new_alias()

    @property
    def names(self) -> Sequence[str] | None:
        """See :class:`Relation`."""
        return tuple(self._source.types)

    def column(self, name: str) -> Typed:
        """See :class:`Relation`."""
        type_ = sql_type(self._source.types[name])
        if type_ is None:
            raise NotUnderstood(f"the type {self._source.types[name]} of the column {name}")
        self._work.used.append((self._source.key, name))
        return Typed(f"{self.own}.{identifier(name)}", type_)

    def sql(self) -> str:
        """See :class:`Relation`."""
        # the table must exist, even if no column of it is read
        self._work.used.append((self._source.key, ""))
        return f"{identifier(self._source.key)} AS {self.own}"


class QueryRelation:
    """A query in FROM; ``listed`` are the names of an alias with a column list."""

    def __init__(self, work: Work, query: Query, alias: str, listed: Sequence[str] = ()) -> None:
        self.alias = alias
        self.why: NotUnderstood | None = None
        self._query = query
        self.own = work.new_alias()
        if listed and len(listed) != len(query.names):
            raise NotUnderstood("a list of column names whose length differs from its query's")
        self._names = tuple(listed or query.names)

    @property
    def names(self) -> Sequence[str] | None:
        """See :class:`Relation`."""
        return self._names

    def column(self, name: str) -> Typed:
        """See :class:`Relation`."""
        if self._names.count(name) != 1:
            raise NotUnderstood(f"several columns named {name}")
        at = self._names.index(name)
        return Typed(f"{self.own}.c{at}", self._query.type_of(at))

    def sql(self) -> str:
        """See :class:`Relation`."""
        return f"({self._query.sql()}) AS {self.own}"


class LeftOut:
    """A relation that is not read; nothing can be said about its columns."""

    def __init__(self, alias: str, why: NotUnderstood, names: Sequence[str] | None = None) -> None:
        self.alias = alias
        self.why: NotUnderstood | None = why
        self.names = names
        self._why = why

    def column(self, _: str) -> Typed:
        """See :class:`Relation`."""
        raise self._why

    def sql(self) -> str:
        """See :class:`Relation`."""
        raise self._why


class Scope:
    """The relations in which a name is looked up; then ``outer``, the enclosing query's."""

    def __init__(self, relations: Sequence[Relation], outer: Scope | None = None) -> None:
        self.relations = list(relations)
        self.outer = outer

    def column(self, qualifier: str, name: str) -> Typed:
        """The column; raises :class:`NotUnderstood` if it is not found or ambiguous."""
        found = self._qualified(qualifier, name) if qualifier else self._bare(name)
        if found is not None:
            return found
        if self.outer is None:
            raise NotUnderstood(f"the column {name}, which is in no table of the query")
        return self.outer.column(qualifier, name)

    def _qualified(self, qualifier: str, name: str) -> Typed | None:
        mine = [each for each in self.relations if each.alias == qualifier]
        holding = [each for each in mine if each.names is None or name in each.names]
        if len(holding) > 1:
            raise NotUnderstood(f"several tables with the alias {qualifier}")
        if holding:
            return holding[0].column(name)
        # the qualifier may be a column with fields
        if mine or any(each.names is None or qualifier in each.names for each in self.relations):
            raise NotUnderstood(f"{qualifier}.{name}, which may be a field of a column")
        return None

    def _bare(self, name: str) -> Typed | None:
        found = [each for each in self.relations if each.names is None or name in each.names]
        if len(found) > 1 or any(each.names is None for each in found):
            raise NotUnderstood(f"the column {name}, which is ambiguous")
        return found[0].column(name) if found else None
