"""The common table expressions of a statement's outermost WITH, and their readers."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property

from sqlglot import exp

from airflow_hive_opt.pruning.output_columns import UNKNOWN, output_name
from airflow_hive_opt.pruning.subqueries import is_stable
from airflow_hive_opt.statement.parse import span_of


class CommonTables:
    """CTEs by name. Inner and recursive CTEs, and those that share a name, are not known."""

    def __init__(self, sql: str, tree: exp.Expr, every: Sequence[exp.Expr]) -> None:
        """``every`` has each CTE and each table of the tree."""
        self._sql = sql
        often = Counter(node.alias.lower() for node in every if isinstance(node, exp.CTE))
        self._names = frozenset(often)
        self._known: dict[str, exp.CTE] = {}
        for holder in (tree, tree.args.get("expression")):
            with_ = holder.args.get("with_") if isinstance(holder, exp.Expr) else None
            for cte in with_.expressions if with_ and not with_.args.get("recursive") else ():
                if often[cte.alias.lower()] == 1 and span_of(cte) is not None:
                    self._known[cte.alias.lower()] = cte
        self._forget_read_before()
        readers: dict[str, set[int]] = defaultdict(set)
        for node in every:
            if isinstance(node, exp.Table) and len(node.parts) == 1:
                readers[node.name.lower()].add(id(node))
        self._readers = readers
        # by the id of a node, which lives as long as it is in here
        self._read_below: dict[int, tuple[exp.Expr, frozenset[str]]] = {}
        self._named: dict[str, tuple[str, ...]] = {}

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

    def stable(self, node: exp.Expr) -> bool:
        """Whether all known CTEs that the node reads return the same rows each time."""
        return self._unstable.isdisjoint(self._read_by(node))

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
        texts = [text for name, text in self._texts.items() if name in read]
        return f"WITH {', '.join(texts)} " if texts else ""

    def tables(self, node: exp.Expr) -> tuple[str, ...]:
        """The names of the tables that the node reads, directly or through CTEs."""
        through = map(self._tables_in, self._known_read_by(node))
        return tuple(itertools.chain(self._tables_below(node), *through))

    def _tables_below(self, node: exp.Expr) -> tuple[str, ...]:
        return tuple(
            ".".join(part.name for part in table.parts)
            for table in node.find_all(exp.Table)
            if table.name and not (len(table.parts) == 1 and self.knows(table.name))
        )

    def _tables_in(self, name: str) -> tuple[str, ...]:
        """The tables that the body of a CTE names."""
        if name not in self._named:
            self._named[name] = self._tables_below(self._known[name].this)
        return self._named[name]

    @cached_property
    def _unstable(self) -> frozenset[str]:
        """The CTEs whose bodies, without the CTEs that they read, are not stable."""
        bodies = ((name, cte.this) for name, cte in self._known.items())
        return frozenset(n for n, body in bodies if not is_stable(self._texts[n], body))

    @cached_property
    def _texts(self) -> dict[str, str]:
        """The definitions of the known CTEs."""
        spans = ((name, span_of(cte)) for name, cte in self._known.items())
        return {name: span.of(self._sql) for name, span in spans if span is not None}

    def _known_read_by(self, node: exp.Expr) -> list[str]:
        return [name for name in self._read_by(node) if name in self._known]

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
