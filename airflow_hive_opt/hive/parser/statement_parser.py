"""A parser for Hive 2.3's query language.

The parser follows Hive's own grammar, because the grammar decides which statements Hive rejects.
Hive rejects natural joins, joins in parentheses and subqueries in FROM without an alias. Hive
accepts ``FROM ... INSERT`` with several bodies, ``MAP ... USING``, SORT BY and hints.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, NamedTuple

from airflow_hive_opt.hive.parser import syntax
from airflow_hive_opt.hive.parser.from_clause_parser import FromClauseParser

_HINT = re.compile(
    r"\s*(mapjoin|broadcastjoin|streamtable|hold_ddltime)\s*(?:\(([\w\s,.:`]*)\))?\s*(,|$)",
    re.IGNORECASE,
)
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
        found = self._create_table_as() if self.accept("create") else self._select_or_insert()
        while self.accept(";"):
            pass
        if self.peek().kind != "end":
            self.fail()
        return found

    def _select_or_insert(self) -> Statement:
        query = self.query()
        kinds = [body.destination.kind for body in query.bodies if body.destination]
        return Statement(kinds[-1] if kinds else "SELECT", query)

    def query(self, views: tuple[tuple[str, syntax.Query], ...] = ()) -> syntax.Block:
        """Parses a whole query with its WITH clause and its unions."""
        if self.accept("with"):
            while True:
                name = self.identifier()
                self.expect("as", "(")
                views = (*views, (name, self.query(views)))
                self.expect(")")
                if not self.accept(","):
                    break
        found = self._union()
        return replace(found, views=found.views or views)

    def _union(self) -> syntax.Block:
        first = self._block()
        if not self.at("union"):
            return first
        body = first.bodies[0]
        if body.hints:
            self.fail()
        united: syntax.Query = replace(first, bodies=(replace(body, destination=None),))
        tail = body
        items = (syntax.SelectItem(syntax.Star()),)
        while self.accept("union"):
            distinct = not self.accept("all")
            self.accept("distinct")
            branch = self._block()
            tail = branch.bodies[0]
            branch = replace(branch, bodies=(replace(tail, **_NO_TAIL),))
            united = syntax.Union(united, branch)
            if distinct:
                united = _select_all(united, syntax.Body(items, distinct=True))
        # ORDER BY and LIMIT after the last branch belong to the whole union.
        whole = {name: getattr(tail, name) for name in _NO_TAIL}
        return _select_all(united, syntax.Body(items, body.destination, **whole))

    def _block(self) -> syntax.Block:
        if self.accept("("):
            self.fail(-1)
        if self.accept("from"):
            source = self.source()
            bodies = [self._body(self._destination())]
            while self.at("insert", "select", "map", "reduce"):
                bodies.append(self._body(self._destination()))
            return syntax.Block(source, tuple(bodies))
        destination = self._destination()
        if destination and self.accept("from"):
            source = self.source()
            return syntax.Block(source, (self._body(destination),))
        if destination and self.at("with"):
            inner = self.query()
            return replace(inner, bodies=(replace(inner.bodies[0], destination=destination),))
        body = self._select_list(destination)
        given = self.source() if self.accept("from") else None
        return syntax.Block(given, (self._clauses(body),))

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
                self.expect("not", "exists")
        return syntax.Destination(
            "INSERT OVERWRITE" if overwrite else "INSERT INTO", table, dynamic
        )

    def _create_table_as(self) -> Statement:
        while self.accept("temporary", "external"):
            pass
        self.expect("table")
        if self.accept("if"):
            self.expect("not", "exists")
        table = self.dotted_name()
        while not (self.at("as") and self.peek(1).lower in ("select", "with", "from", "map")):
            if self.peek().kind == "end":
                self.fail()
            self.next()
        self.expect("as")
        kind, query = "CREATE TABLE AS", self.query()
        body = replace(query.bodies[0], destination=syntax.Destination(kind, table))
        return Statement(kind, replace(query, bodies=(body,)))

    def _select_list(self, destination: syntax.Destination | None) -> syntax.Body:
        if self.at("map", "reduce"):
            self.next()
            return self._transform(destination, self._items(bare=True))
        self.expect("select")
        hints = self._hints() if self.peek().kind == "hint" else ()
        distinct = bool(self.accept("distinct"))
        if not distinct:
            self.accept("all")
        if self.at("transform") and self.peek(1).text == "(":
            self.expect("transform", "(")
            items = self._items(bare=True)
            self.expect(")")
            return self._transform(destination, items)
        items = self._items(bare=False)
        if self.at("using"):
            return self._transform(destination, items)
        return syntax.Body(items, destination, distinct, hints)

    def _hints(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Parses ``/*+ MAPJOIN(a, b), STREAMTABLE(c) */`` as names and arguments, in lower case."""
        text = self.peek().text[3:-2].strip()
        found, at = [], 0
        while at < len(text):
            match = _HINT.match(text, at)
            if match is None:
                message = "MAPJOIN(...), STREAMTABLE(...) with commas"
                self.fail_semantic(40000, f"can't read the hint {text!r}: {message}")
            names = (name.strip(" `") for name in (match[2] or "").lower().split(","))
            found.append((match[1].lower(), tuple(name for name in names if name)))
            at = match.end()
        self.next()
        return tuple(found)

    def _items(self, bare: bool) -> tuple[syntax.SelectItem, ...]:
        return self.listed(lambda: self._item(bare))

    def _item(self, bare: bool) -> syntax.SelectItem:
        expression = self.expression()
        aliases: tuple[str, ...] = ()
        if self.accept("as"):
            aliases = self._names_until_closed() if self.accept("(") else (self.identifier(),)
        elif not bare and self.at_alias():
            aliases = (self.identifier(),)
        return syntax.SelectItem(expression, aliases)

    def _names_until_closed(self) -> tuple[str, ...]:
        names = []
        while not self.accept(")"):
            names.append(self.identifier())
            while not self.at(",", ")"):  # a type: TRANSFORM ... AS (a INT)
                if self.next().kind == "end":
                    self.fail()
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
            closed = self.accept("(")
            columns = self._names_until_closed() if closed else self.listed(self.identifier)
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
            found: dict[str, Any] = {}
            if word in ("where", "having"):
                self.next()
                found[word] = self.expression()
            elif word == "group":
                self.expect("group", "by")
                found["group_by"], found["grouping_sets"] = self._group_keys()
            elif word == "window":
                self.next()
                self.listed(self.window_definition)
            elif word in ("order", "sort") and self.peek(1).lower == "by":
                self.expect(word, "by")
                found[f"{word}_by"] = self.listed(self.sort_key)
            elif word in ("distribute", "cluster"):
                self.expect(word, "by")
                found[f"{word}_by"] = self._maybe_parenthesised()
            elif word == "limit":
                self.next()
                number = self.next().text
                found["limit"] = int(self.next().text if self.accept(",") else number)
            elif word == "lateral":
                self.fail()
            else:
                return body
            body = replace(body, **found)

    def _group_keys(self) -> tuple[tuple[syntax.Expression, ...], int]:
        keys = self._maybe_parenthesised()
        if self.accept("with"):
            if self.accept("rollup"):
                return keys, len(keys) + 1
            self.expect("cube")
            return keys, 2 ** len(keys)
        if self.accept("grouping"):
            self.expect("sets", "(")
            count = 0
            while not self.accept(")"):
                if self.at("(") and self.peek(1).text == ")":
                    self.expect("(", ")")
                else:
                    self.expression()
                count += 1
                self.accept(",")
            return keys, count
        return keys, 0

    def _maybe_parenthesised(self) -> tuple[syntax.Expression, ...]:
        first, *others = found = self.listed(self.expression)
        if not others and isinstance(first, syntax.Call) and first.name == "struct()":
            return first.arguments
        return found


def _select_all(query: syntax.Query, body: syntax.Body) -> syntax.Block:
    return syntax.Block(syntax.SubquerySource(query, "_u1"), (body,))
