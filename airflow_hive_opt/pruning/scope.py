"""The names in scope in one query block, and the resolution of column references.

``hive.generate.names`` resolves names for Hive's compiler, by Hive's rules and with Hive's errors.
Spark's rules differ (struct fields, aliases in GROUP BY, hidden columns), so there are two modules.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from airflow_hive_opt.pruning.output_columns import is_plain, may_be_generated, relation_columns
from airflow_hive_opt.pruning.query import ColumnRef, Projection, Relation
from airflow_hive_opt.statement.parse import error_at

# Columns that every file-based table has, but does not list.
HIDDEN_COLUMNS = frozenset(
    {"_metadata", "input__file__name", "block__offset__inside__file", "row__id"}
)


# The prefix of the internal aliases of relations without an alias; a number follows.
UNNAMED = "__unnamed_"


@dataclass(frozen=True)
class Scope:
    """The relations of a block by alias, and the scope of the enclosing query, if any.

    ``output`` are the columns of ``SELECT *``. ``merged`` are columns named in USING. ``aliases``
    are names of the select list that expressions may use. ``lenient`` is true if any column may be
    merged (a NATURAL join). ``nearest`` are relations whose columns hide those of the others.
    """

    sql: str
    relations: dict[str, Relation] = field(default_factory=dict)
    outer: Scope | None = None
    output: tuple[Projection, ...] = ()
    merged: frozenset[str] = frozenset()
    aliases: frozenset[str] = frozenset()
    lenient: bool = False
    nearest: frozenset[str] = frozenset()

    def resolve(self, column: exp.Column) -> tuple[ColumnRef | None, bool]:
        """The column to which ``column`` refers, and whether it is that column itself.

        The reference is ``None`` for a column of an outer query, for one that NATURAL or USING of a
        full join may merge, for one that Spark names after its expression, and for one of a
        relation that the planner can't analyze. The second value is ``False`` also for a field
        inside a struct column. Raises :class:`PlanError` for an unknown or ambiguous name.
        """
        name = column.name.lower()
        qualifier = column.table.lower()
        database = column.args["db"].name.lower() if column.args.get("db") else ""
        if database and self._is_alias(database):  # alias.struct.field
            return ColumnRef(database, qualifier), False
        if database and (owners := self._owners(database)):  # struct.field.field
            return (ColumnRef(owners[0], database), False) if len(owners) == 1 else (None, False)
        if qualifier:
            return self._qualified(column, qualifier, name)
        if (name in self.merged or self.lenient) and not self.nearest.intersection(
            self._owners(name)
        ):
            return self._merged(name)
        owners = self._owners(name)
        if len(owners) > 1:
            raise error_at(
                self.sql,
                column,
                f"column {column.name} is ambiguous: it is in {' and in '.join(sorted(owners))}; "
                "put the table's alias before it",
            )
        if len(owners) == 1:
            return ColumnRef(owners[0], name), True
        if not owners and not self._may_be_hidden(name):
            raise error_at(self.sql, column, f"there is no column {column.name} in {self._names()}")
        return None, False

    def knows(self, alias: str) -> bool:
        """Whether ``alias`` is a relation of this block or of an enclosing query."""
        return alias in self.relations or (self.outer is not None and self.outer.knows(alias))

    def columns(self, alias: str) -> tuple[str, ...] | None:
        """The column names of a relation in order, or ``None`` if they are not known."""
        return relation_columns(self.relations[alias])

    def _qualified(
        self, column: exp.Column, qualifier: str, name: str
    ) -> tuple[ColumnRef | None, bool]:
        if self._is_alias(qualifier):
            columns = self.columns(qualifier)
            if columns is not None and may_be_generated(name, columns):
                return None, False
            if columns is None or name in columns or name in HIDDEN_COLUMNS:
                return ColumnRef(qualifier, name), True
            raise error_at(self.sql, column, f"there is no column {column.name} in {qualifier}")
        owners = self._owners(qualifier)
        if owners:  # a field of a struct column
            return (ColumnRef(owners[0], qualifier), False) if len(owners) == 1 else (None, False)
        if self.outer is not None and self.outer.knows(qualifier):
            return None, False
        if self._may_be_hidden(qualifier):
            return None, False
        raise error_at(
            self.sql, column, f"there is no table or alias {qualifier} here, only {self._names()}"
        )

    def _is_alias(self, name: str) -> bool:
        """Whether ``name`` before a dot is a relation's alias, not a nearer relation's column."""
        if name not in self.relations:
            return False
        if not self.nearest or name in self.nearest:
            return True
        return self.nearest.isdisjoint(self._owners(name))

    def _merged(self, name: str) -> tuple[ColumnRef | None, bool]:
        """The column whose value a merged column has, if it always comes from one side."""
        found = [each.column for each in self.output if each.name == name]
        ref = found[0] if len(found) == 1 and not self.lenient else None
        return ref, ref is not None

    def _owners(self, name: str) -> list[str]:
        if self._may_be_generated(name):
            return []
        found = [
            alias
            for alias in self.relations
            if (columns := self.columns(alias)) is not None and name in columns
        ]
        return [alias for alias in found if alias in self.nearest] or found

    def _may_be_hidden(self, name: str) -> bool:
        if self.lenient or name in HIDDEN_COLUMNS or name in self.aliases:
            return True
        if self._may_be_generated(name):
            return True
        if any(self.columns(alias) is None for alias in self.relations):
            return True
        return self.outer is not None and (
            bool(self.outer._owners(name)) or self.outer._may_be_hidden(name)
        )

    def _may_be_generated(self, name: str) -> bool:
        if is_plain(name):
            return False
        return any(may_be_generated(name, self.columns(alias) or ()) for alias in self.relations)

    def _names(self) -> str:
        named = [alias for alias in self.relations if not alias.startswith(UNNAMED)]
        return ", ".join(named) or "the tables here"


def by_alias(sql: str, relations: Iterable[tuple[Relation, exp.Expr]]) -> dict[str, Relation]:
    """Relations by alias; raises :class:`PlanError` if two have the same alias."""
    found: dict[str, Relation] = {}
    for relation, node in relations:
        if relation.alias in found:
            raise error_at(
                sql, node, f"two tables here are called {relation.alias}: give one an alias"
            )
        found[relation.alias] = relation
    return found
