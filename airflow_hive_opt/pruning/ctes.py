"""The common table expressions of a statement's outermost WITH, and their readers."""

from __future__ import annotations

from collections import Counter, defaultdict

from sqlglot import exp

from airflow_hive_opt.pruning.output_columns import UNKNOWN, output_name
from airflow_hive_opt.statement.parse import span_of


class CommonTables:
    """CTEs by name.

    A CTE is not known if it is in an inner WITH, is recursive or shares its name with another one.
    """

    def __init__(self, sql: str, tree: exp.Expr) -> None:
        self._sql = sql
        every = Counter(cte.alias.lower() for cte in tree.find_all(exp.CTE))
        self._names = frozenset(every)
        self._known: dict[str, exp.CTE] = {}
        for holder in (tree, tree.args.get("expression")):
            with_ = holder.args.get("with_") if isinstance(holder, exp.Expr) else None
            for cte in with_.expressions if with_ and not with_.args.get("recursive") else ():
                if every[cte.alias.lower()] == 1 and span_of(cte) is not None:
                    self._known[cte.alias.lower()] = cte
        self._forget_read_before()
        readers: dict[str, set[int]] = defaultdict(set)
        for table in tree.find_all(exp.Table):
            if len(table.parts) == 1:
                readers[table.name.lower()].add(id(table))
        self._readers = readers
        # by the id of a node, which lives as long as it is in here
        self._read_below: dict[int, tuple[exp.Expr, frozenset[str]]] = {}

    def _forget_read_before(self) -> None:
        """Removes CTEs whose name is read before its definition: there the name means a table."""
        order = list(self._known)
        for at, cte in enumerate(list(self._known.values())):
            read = {table.name.lower() for table in cte.this.find_all(exp.Table)}
            for name in read.intersection(order[at:]):
                self._known.pop(name, None)

    def knows(self, name: str) -> bool:
        """Whether any CTE of the statement has this unqualified name."""
        return name.lower() in self._names

    def readers(self, name: str) -> frozenset[int]:
        """The ids of the table nodes that read the CTE."""
        return frozenset(self._readers.get(name, ()))

    def body(self, name: str) -> exp.Expr | None:
        """The CTE's query, or ``None`` if the CTE is not known."""
        return self._known[name].this if name in self._known else None

    def bodies(self, node: exp.Expr) -> tuple[exp.Expr, ...]:
        """The queries of the known CTEs that the node reads, directly or through other CTEs."""
        return tuple(self._known[name].this for name in self._read_by(node) if name in self._known)

    def listed(self, name: str) -> tuple[str, ...]:
        """The column names in ``WITH name (a, b) AS``; empty without such a list."""
        columns = self._known[name].args["alias"].columns
        return tuple(column.name.lower() for column in columns)

    def columns(self, name: str) -> tuple[str, ...] | None:
        """Output column names, or ``None`` if the text does not tell them."""
        cte = self._known[name]
        if listed := self.listed(name):
            return listed
        names = tuple(map(output_name, cte.this.selects))
        return None if UNKNOWN.name in names else names

    def covers(self, node: exp.Expr) -> bool:
        """Whether every CTE that the node reads, directly or through other CTEs, is known."""
        return all(name in self._known for name in self._read_by(node))

    def definitions(self, node: exp.Expr) -> str:
        """A WITH clause with the CTEs that the node reads; empty if it reads none."""
        read = self._read_by(node)
        texts = [
            span.of(self._sql)
            for name, cte in self._known.items()
            if name in read and (span := span_of(cte)) is not None
        ]
        return f"WITH {', '.join(texts)} " if texts else ""

    def tables(self, node: exp.Expr) -> tuple[str, ...]:
        """The names of the tables that the node reads, directly or through CTEs."""
        return tuple(
            ".".join(part.name for part in table.parts)
            for part in (node, *self.bodies(node))
            for table in part.find_all(exp.Table)
            if table.name and not (len(table.parts) == 1 and self.knows(table.name))
        )

    def _read_by(self, node: exp.Expr) -> frozenset[str]:
        """The CTEs that the node reads, directly or through other CTEs."""
        if id(node) not in self._read_below:
            found = {
                table.name.lower()
                for table in node.find_all(exp.Table)
                if len(table.parts) == 1 and table.name.lower() in self._names
            }
            bodies = (self._known[name].this for name in found if name in self._known)
            read = frozenset(found.union(*map(self._read_by, bodies)))
            self._read_below[id(node)] = node, read
        return self._read_below[id(node)][1]
