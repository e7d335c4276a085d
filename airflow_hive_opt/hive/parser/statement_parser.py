"""A parser for Hive 2.3's query language.

The parser follows Hive's own grammar, because the grammar decides which statements Hive rejects.
Hive rejects natural joins, joins in parentheses and subqueries in FROM without an alias. Hive
accepts ``FROM ... INSERT`` with several bodies, ``MAP ... USING``, SORT BY and hints.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from airflow_hive_opt.hive.parser import syntax
from airflow_hive_opt.hive.parser.from_clause_parser import NO_ALIAS, FromClauseParser
from airflow_hive_opt.hive.parser.hints import parse_hints

_NO_TAIL: dict[str, Any] = {
    "order_by": (),
    "sort_by": (),
    "distribute_by": (),
    "cluster_by": (),
    "limit": None,
}


class Statement(NamedTuple):
    """A parsed statement: SELECT, INSERT or CREATE TABLE AS."""

    kind: str
    query: syntax.Query


def parse_hive(sql: str) -> Statement:
    """Parses a statement; raises :class:`PlanError` with code ``PARSE``.

    For an unknown hint or for USING, the code is ``SEMANTIC``.

    >>> parse_hive("SELECT a.key FROM a JOIN b ON a.key = b.key").kind
    'SELECT'
    >>> parse_hive("SELECT a.key FROM a NATURAL JOIN b")
    Traceback (most recent call last):
    airflow_hive_opt.statement.errors.PlanError: line 1, column 21: Hive can't read 'NATURAL' here
    """
    return _Parser(sql).statement()


class _Parser(FromClauseParser):
    def statement(self) -> Statement:
        if self.accept("explain"):
            while self.accept("extended", "logical", "formatted", "dependency"):
                pass
        if self.accept("create"):
            return self._create_table_as()
        query = self.query()
        while self.accept(";"):
            pass
        if self.peek().kind != "end":
            self.fail()
        kind = "SELECT"
        for body in query.bodies if isinstance(query, syntax.Block) else ():
            kind = body.destination.kind if body.destination else kind
        return Statement(kind, query)

    def query(self, views: tuple[tuple[str, syntax.Query], ...] = ()) -> syntax.Query:
        """Parses a whole query with its WITH clause and its unions."""
        if self.accept("with"):
            while True:
                name = self.identifier()
                self.expect("as")
                self.expect("(")
                views = (*views, (name, self.query(views)))
                self.expect(")")
                if not self.accept(","):
                    break
        found = self._union(views)
        if isinstance(found, syntax.Block) and views and not found.views:
            found = replace(found, views=views)
        return found

    def _union(self, views: tuple[tuple[str, syntax.Query], ...]) -> syntax.Query:
        first = self._block()
        if not self.at("union"):
            return first
        body = first.bodies[0]
        if body.hints:
            self.fail()
        united: syntax.Query = replace(first, bodies=(replace(body, destination=None),))
        tail = body
        while self.accept("union"):
            distinct = not self.accept("all")
            self.accept("distinct")
            branch = self._block()
            tail = branch.bodies[0]
            united = syntax.Union(united, replace(branch, bodies=(replace(tail, **_NO_TAIL),)))
            if distinct:
                united = _select_all(
                    united, syntax.Body((syntax.SelectItem(syntax.Star()),), distinct=True)
                )
        # ORDER BY and LIMIT after the last branch belong to the whole union.
        whole = {name: getattr(tail, name) for name in _NO_TAIL}
        items = (syntax.SelectItem(syntax.Star()),)
        return _select_all(united, syntax.Body(items, body.destination, **whole), views)

    def _block(self) -> syntax.Block:
        if self.accept("("):
            self.fail(-1)
        if self.accept("from"):
            source = self.source()
            bodies = [self._body(self._destination())]
            while self.at("insert") or self.at("select", "map", "reduce"):
                bodies.append(self._body(self._destination()))
            return syntax.Block(source, tuple(bodies))
        destination = self._destination()
        if destination and self.accept("from"):
            source = self.source()
            return syntax.Block(source, (self._body(destination),))
        if destination and self.at("with"):
            inner = self.query()
            if isinstance(inner, syntax.Block):
                return replace(inner, bodies=(replace(inner.bodies[0], destination=destination),))
        return self._select_from(destination)

    def _select_from(self, destination: syntax.Destination | None) -> syntax.Block:
        body = self._select_list(destination)
        source = self.source() if self.accept("from") else None
        return syntax.Block(source, (self._clauses(body),))

    def _body(self, destination: syntax.Destination | None) -> syntax.Body:
        return self._clauses(self._select_list(destination))

    def _destination(self) -> syntax.Destination | None:
        if not self.accept("insert"):
            return None
        overwrite = bool(self.accept("overwrite"))
        if not overwrite:
            self.expect("into")
        if overwrite and (self.accept("local") or self.at("directory")):
            self.expect("directory")
            self.next()
            self._row_format()
            return syntax.Destination("INSERT OVERWRITE", None)
        self.accept("table")
        table = self.dotted_name()
        dynamic = 0
        if self.accept("partition"):
            self.expect("(")
            while not self.accept(")"):
                self.identifier()
                if self.accept("="):
                    self.expression()
                else:
                    dynamic += 1
                self.accept(",")
            if self.accept("if"):
                self.expect("not")
                self.expect("exists")
        return syntax.Destination(
            "INSERT OVERWRITE" if overwrite else "INSERT INTO", table, dynamic
        )

    def _create_table_as(self) -> Statement:
        while self.accept("temporary", "external"):
            pass
        self.expect("table")
        if self.accept("if"):
            self.expect("not")
            self.expect("exists")
        table = self.dotted_name()
        while not (self.at("as") and self.peek(1).lower in ("select", "with", "from", "map")):
            if self.peek().kind == "end":
                self.fail()
            self.next()
        self.expect("as")
        query = self.query()
        while self.accept(";"):
            pass
        if self.peek().kind != "end":
            self.fail()
        kind = "CREATE TABLE AS"
        if isinstance(query, syntax.Block):
            body = replace(query.bodies[0], destination=syntax.Destination(kind, table))
            query = replace(query, bodies=(body,))
        return Statement(kind, query)

    def _select_list(self, destination: syntax.Destination | None) -> syntax.Body:
        if self.at("map", "reduce"):
            self.next()
            return self._transform(destination, self._items(bare=True))
        self.expect("select")
        hint = self.peek()
        hints: tuple[tuple[str, tuple[str, ...]], ...] = ()
        if hint.kind == "hint":
            hints = parse_hints(self.sql, self.next())
        distinct = bool(self.accept("distinct"))
        if not distinct:
            self.accept("all")
        if self.at("transform") and self.peek(1).text == "(":
            self.next()
            self.expect("(")
            items = self._items(bare=True)
            self.expect(")")
            return self._transform(destination, items)
        items = self._items(bare=False)
        if self.at("using"):
            return self._transform(destination, items)
        return syntax.Body(items, destination, distinct, hints)

    def _items(self, bare: bool) -> tuple[syntax.SelectItem, ...]:
        items = []
        while True:
            expression = self.expression()
            aliases: tuple[str, ...] = ()
            if self.accept("as"):
                if self.accept("("):
                    aliases = self._names_until_closed()
                elif self.peek().kind == "string":
                    self.fail()
                else:
                    aliases = (self.identifier(),)
            elif not bare and self._is_at_alias():
                aliases = (self.identifier(),)
            items.append(syntax.SelectItem(expression, aliases))
            if not self.accept(","):
                return tuple(items)

    def _is_at_alias(self) -> bool:
        here = self.peek()
        return here.kind == "quoted" or (here.kind == "word" and here.lower not in NO_ALIAS)

    def _names_until_closed(self) -> tuple[str, ...]:
        names = []
        while not self.accept(")"):
            names.append(self.identifier())
            while not self.at(",", ")"):  # a type: TRANSFORM ... AS (a INT)
                self.next()
            self.accept(",")
        return tuple(names)

    def _transform(
        self, destination: syntax.Destination | None, items: tuple[syntax.SelectItem, ...]
    ) -> syntax.Body:
        self._row_format()
        self.expect("using")
        script = self.next().text
        columns: tuple[str, ...] = ("key", "value")
        if self.accept("as"):
            if self.accept("("):
                columns = self._names_until_closed()
            else:
                names = [self.identifier()]
                while self.accept(","):
                    names.append(self.identifier())
                columns = tuple(names)
        self._row_format()
        return syntax.Body(items, destination, transform=syntax.Transform(script, columns))

    def _row_format(self) -> None:
        if self.accept("row"):
            while not self.at("using", "from", "as", "select", "where", "recordreader", "stored"):
                if self.peek().kind == "end" or self.at(")"):
                    break
                self.next()
        if self.accept("stored"):
            self.expect("as")
            self.next()
        if self.accept("recordreader"):
            self.next()

    def _clauses(self, body: syntax.Body) -> syntax.Body:
        while True:
            word = self.peek().lower
            if word == "where":
                self.next()
                body = replace(body, where=self.expression())
            elif word == "group":
                self.next()
                self.expect("by")
                keys, sets = self._group_keys()
                body = replace(body, group_by=keys, grouping_sets=sets)
            elif word == "having":
                self.next()
                body = replace(body, having=self.expression())
            elif word == "window":
                self.next()
                self.window_definitions()
            elif word in ("order", "sort") and self.peek(1).lower == "by":
                self.next()
                self.expect("by")
                order = self.sort_keys()
                ordered = word == "order"
                body = replace(body, order_by=order) if ordered else replace(body, sort_by=order)
            elif word in ("distribute", "cluster"):
                self.next()
                self.expect("by")
                keys = self._maybe_parenthesised()
                if word == "distribute":
                    body = replace(body, distribute_by=keys)
                else:
                    body = replace(body, cluster_by=keys)
            elif word == "limit":
                self.next()
                number = self.next().text
                if self.accept(","):
                    number = self.next().text
                body = replace(body, limit=int(number))
            elif word == "lateral":
                self.fail()
            else:
                return body

    def _group_keys(self) -> tuple[tuple[syntax.Expression, ...], int]:
        keys = self._maybe_parenthesised()
        if self.accept("with"):
            if self.accept("rollup"):
                return keys, len(keys) + 1
            self.expect("cube")
            return keys, 2 ** len(keys)
        if self.accept("grouping"):
            self.expect("sets")
            self.expect("(")
            count = 0
            while not self.accept(")"):
                if self.at("(") and self.peek(1).text == ")":
                    self.next()
                    self.next()
                else:
                    self.expression()
                count += 1
                self.accept(",")
            return keys, count
        return keys, 0

    def _maybe_parenthesised(self) -> tuple[syntax.Expression, ...]:
        found = [self.expression()]
        while self.accept(","):
            found.append(self.expression())
        if len(found) == 1 and isinstance(found[0], syntax.Call) and found[0].name == "struct()":
            return found[0].arguments
        return tuple(found)


def _select_all(
    query: syntax.Query, body: syntax.Body, views: tuple[tuple[str, syntax.Query], ...] = ()
) -> syntax.Block:
    return syntax.Block(syntax.SubquerySource(query, "_u1"), (body,), views)
