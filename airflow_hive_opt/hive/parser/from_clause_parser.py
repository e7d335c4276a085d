"""FROM in Hive 2.3's query language: tables, subqueries, joins, lateral views."""

from __future__ import annotations

from airflow_hive_opt.hive.parser import syntax
from airflow_hive_opt.hive.parser.expression_parser import ExpressionParser

# Words that end a table or a SELECT item and are not its alias.
_NO_ALIAS_WORDS = """
where group having order sort distribute cluster limit union join inner left right full cross on
lateral insert select map reduce from using window tablesample as natural unique anti semi outer
by then set rows range between and or not with
"""
_NO_ALIAS = frozenset(_NO_ALIAS_WORDS.split())
_JOINS = {
    ("join",): "INNER",
    ("inner", "join"): "INNER",
    ("cross", "join"): "INNER",
    ("left", "join"): "LEFT OUTER",
    ("left", "outer", "join"): "LEFT OUTER",
    ("right", "join"): "RIGHT OUTER",
    ("right", "outer", "join"): "RIGHT OUTER",
    ("full", "join"): "FULL OUTER",
    ("full", "outer", "join"): "FULL OUTER",
    ("left", "semi", "join"): "LEFT SEMI",
}


class FromClauseParser(ExpressionParser):
    """Parses FROM clauses.

    It extends the parser of expressions; the parser of queries extends it.
    """

    def source(self) -> syntax.Source:
        """Parses the FROM clause after the word FROM."""
        found = self._laterals(self._factor())
        while True:
            words = tuple(self.peek(ahead).lower for ahead in range(3))
            kind, length = next(
                ((_JOINS[words[:n]], n) for n in (3, 2, 1) if words[:n] in _JOINS), ("", 0)
            )
            if not kind:
                if self.accept(","):
                    right = self._laterals(self._factor())
                    found = syntax.JoinSource("INNER", found, right, None)
                    continue
                return found
            at = self.peek().start
            for _ in range(length):
                self.next()
            right = self._laterals(self._factor())
            on = self.expression() if self.accept("on") else None
            if on is None and self.at("using"):
                self.fail_semantic(10011, "USING is no function of Hive: join ON the columns")
            if self.at("lateral"):
                self.fail()
            found = syntax.JoinSource(kind, found, right, on, at)

    def _laterals(self, source: syntax.Source) -> syntax.Source:
        while self.at("lateral"):
            at = self.next().start
            self.expect("view")
            self.accept("outer")
            call = self.expression()
            if not isinstance(call, syntax.Call):
                self.fail()
            alias = self.identifier()
            columns = []
            if self.accept("as"):
                columns.append(self.identifier())
                while self.at(",") and self.peek(2).lower not in ("(",):
                    self.next()
                    columns.append(self.identifier())
            source = syntax.LateralView(source, call, alias, tuple(columns), at)
        return source

    def _factor(self) -> syntax.Source:
        at = self.peek().start
        if self.accept("("):
            if not self.at("select", "from", "with", "map", "reduce"):
                self.fail()
            query = self.query()
            self.expect(")")
            self.accept("as")
            if not self.at_alias():
                self.fail()
            return syntax.SubquerySource(query, self.identifier(), at)
        if self.peek().lower == "unique":
            self.fail()
        name = self.dotted_name()
        sample = ""
        if self.at("tablesample"):
            start = self.next().start
            self._skip_parentheses()
            sample = self.sql[start : self.peek(-1).stop]
        alias = name.rpartition(".")[2]
        if self.accept("as") or self.at_alias():
            alias = self.identifier()
        if self.at("(") or self.at("natural", "anti"):
            self.fail()
        return syntax.TableSource(name, alias, at, sample)

    def at_alias(self) -> bool:
        """Tells whether the current token is an alias: a name with which no clause begins."""
        here = self.peek()
        return here.kind == "quoted" or (here.kind == "word" and here.lower not in _NO_ALIAS)

    def _skip_parentheses(self) -> None:
        self.expect("(")
        depth = 1
        while depth:
            token = self.next()
            if token.kind == "end":
                self.fail()
            depth += {"(": 1, ")": -1}.get(token.text, 0)
