"""Parses Hive's expressions by precedence climbing over the tokens of ``lexer``."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from airflow_hive_opt.hive.parser import syntax
from airflow_hive_opt.hive.parser.lexer import Token, number_type, tokens
from airflow_hive_opt.statement.errors import PlanError, position

_COMPARISONS = ("=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=")
_SPELLED = {"==": "=", "!=": "<>", "regexp": "rlike"}
_PREDICATES = ("in", "between", "like", "rlike", "regexp")
_NOT_NAMES_WORDS = """
from where group order having union on join and or then else when end select as by in is between
like
"""
_NOT_NAMES = frozenset(_NOT_NAMES_WORDS.split())
_UNITS_WORDS = """
year month day hour minute second years months days hours minutes
"""
_UNITS = frozenset(_UNITS_WORDS.split())
_Part = TypeVar("_Part")


class ExpressionParser:
    """Parses expressions. :mod:`.statement_parser` adds queries."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self._tokens = tokens(sql)
        self._at = 0

    def query(self, views: tuple[tuple[str, syntax.Query], ...] = ()) -> syntax.Query:
        """A query in parentheses, for IN and EXISTS."""
        raise NotImplementedError

    # Tokens.

    def peek(self, ahead: int = 0) -> Token:
        """Returns the token ``ahead`` places after the current one."""
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def next(self) -> Token:
        """Returns the current token and moves to the next."""
        token = self.peek()
        self._at += 1
        return token

    def at(self, *words: str) -> bool:
        """Tells whether the current token is one of ``words``."""
        return self.peek().lower in words

    def accept(self, *words: str) -> Token | None:
        """Returns the current token and moves on if it is one of ``words``, else ``None``."""
        return self.next() if self.at(*words) else None

    def expect(self, *words: str) -> Token:
        """Moves on past ``words`` and returns the last; raises :class:`PlanError` for others."""
        return [self.accept(word) or self.fail() for word in words][-1]

    def listed(self, parse: Callable[[], _Part]) -> tuple[_Part, ...]:
        """Parses one or more parts with commas between them."""
        found = [parse()]
        while self.accept(","):
            found.append(parse())
        return tuple(found)

    def fail(self, ahead: int = 0) -> NoReturn:
        """Raises the parse error for the token ``ahead`` places after the current one."""
        token = self.peek(ahead)
        where = position(self.sql, token.start)
        what = f"can't read {token.text!r} here" if token.text else "expects more at the end"
        raise PlanError("PARSE", f"Hive {what}", *where)

    def fail_semantic(self, number: int, message: str) -> NoReturn:
        """Raises a semantic error for the current token."""
        raise PlanError("SEMANTIC", message, *position(self.sql, self.peek().start), number=number)

    def identifier(self) -> str:
        """Parses a name: in lower case and without backquotes."""
        token = self.peek()
        if token.kind == "quoted":
            self.next()
            return token.text[1:-1].replace("``", "`").lower()
        if token.kind != "word":
            self.fail()
        return self.next().text.lower()

    def dotted_name(self) -> str:
        """Parses ``table`` or ``database.table``."""
        name = self.identifier()
        return f"{name}.{self.identifier()}" if self.accept(".") else name

    # Expressions, from the lowest precedence to the highest.

    def expression(self) -> syntax.Expression:
        """Parses an expression; raises :class:`PlanError`."""
        found = self._and()
        while token := self.accept("or"):
            found = syntax.Call("or", (found, self._and()), token.start)
        return found

    def _and(self) -> syntax.Expression:
        found = self._not()
        while token := self.accept("and", "&&"):
            found = syntax.Call("and", (found, self._not()), token.start)
        return found

    def _not(self) -> syntax.Expression:
        if token := self.accept("not", "!"):
            return syntax.Call("not", (self._not(),), token.start)
        return self._predicate()

    def _predicate(self) -> syntax.Expression:
        if self.at("exists") and self.peek(1).text == "(":
            token = self.next()
            return syntax.Call("exists", (self._subquery(),), token.start)
        found = self._bits()
        while True:
            token = self.peek()
            if token.lower in _COMPARISONS:
                self.next()
                name = _SPELLED.get(token.lower, token.lower)
                found = syntax.Call(name, (found, self._bits()), token.start)
            elif token.lower == "is":
                self.next()
                negated = self.accept("not")
                self.expect("null")
                found = syntax.Call("isnotnull" if negated else "isnull", (found,), token.start)
            elif self.peek(1 if token.lower == "not" else 0).lower in _PREDICATES:
                negated = self.accept("not")
                found = self._spelled_predicate(found)
                if negated:
                    found = syntax.Call("not", (found,), token.start)
            else:
                return found

    def _spelled_predicate(self, left: syntax.Expression) -> syntax.Expression:
        token = self.next()
        if token.lower == "between":
            low = self._bits()
            self.expect("and")
            return syntax.Call("between", (left, low, self._bits()), token.start)
        if token.lower != "in":
            name = _SPELLED.get(token.lower, token.lower)
            return syntax.Call(name, (left, self._bits()), token.start)
        if self.peek(1).lower in ("select", "from", "with", "map"):
            return syntax.Call("in", (left, self._subquery()), token.start)
        self.expect("(")
        return syntax.Call("in", (left, *self._arguments()), token.start)

    def _subquery(self) -> syntax.Subquery:
        at = self.expect("(").start
        query = self.query()
        self.expect(")")
        return syntax.Subquery(query, at)

    def _bits(self) -> syntax.Expression:
        return self._binary(0)

    def _binary(self, level: int) -> syntax.Expression:
        levels = (("|",), ("&",), ("||",), ("+", "-"), ("*", "/", "%", "div"), ("^",))
        if level == len(levels):
            return self._unary()
        found = self._binary(level + 1)
        while token := self.accept(*levels[level]):
            found = syntax.Call(token.lower, (found, self._binary(level + 1)), token.start)
        return found

    def _unary(self) -> syntax.Expression:
        if token := self.accept("-", "+", "~"):
            inner = self._unary()
            if token.text == "-" and isinstance(inner, syntax.Constant) and inner.text[0] != "-":
                return syntax.Constant("-" + inner.text, inner.type)
            return syntax.Call(f"unary {token.text}", (inner,), token.start)
        found = self._primary()
        while True:
            if token := self.accept("."):
                if isinstance(found, syntax.Name):
                    if self.accept("*"):
                        return syntax.Star(".".join(found.parts), at=token.start)
                    found = syntax.Name((*found.parts, self.identifier()), found.at)
                else:
                    found = syntax.Call("field", (found,), token.start, note=self.identifier())
            elif token := self.accept("["):
                found = syntax.Call("index", (found, self.expression()), token.start)
                self.expect("]")
            else:
                return found

    def _primary(self) -> syntax.Expression:
        token = self.peek()
        if token.kind == "string":
            self.next()
            text = token.text
            while self.peek().kind == "string":  # 'a' 'b' is 'ab'
                text = text[:-1] + self.next().text[1:-1] + text[0]
            return syntax.Constant(text, "string")
        if token.kind == "number":
            return syntax.Constant(self.next().text, number_type(token.text))
        if token.kind == "quoted":
            return syntax.Name((self.identifier(),), token.start)
        if self.accept("("):
            if self.at("select", "from", "with"):
                query = self.query()
                self.expect(")")
                return syntax.Subquery(query, token.start)
            found = self.expression()
            if self.accept(","):
                members = (found, *self.listed(self.expression))
                found = syntax.Call("struct()", members, token.start)
            self.expect(")")
            return found
        if self.accept("*"):
            return syntax.Star(at=token.start)
        if token.kind != "word":
            self.fail()
        return self._word()

    def _word(self) -> syntax.Expression:
        token = self.next()
        word = token.lower
        if word in ("true", "false"):
            return syntax.Constant(word, "boolean")
        if word == "null":
            return syntax.Constant("null", "void")
        if word == "case":
            return self._case(token)
        if word == "cast" and self.accept("("):
            inner = self.expression()
            self.expect("as")
            return syntax.Call("cast", (inner,), token.start, note=self._type())
        if word in ("current_date", "current_timestamp") and not self.at("("):
            return syntax.Call(word, (), token.start)
        if word in ("date", "timestamp") and self.peek().kind == "string":
            return syntax.Constant(f"{word} {self.next().text}", word)
        if word == "interval":
            parts = [word]
            while self.peek().kind in ("string", "number") or self.at("-", *_UNITS):
                parts.append(self.next().text)
                if self.at("to"):
                    parts.append(self.next().text)
            return syntax.Constant(" ".join(parts), "interval")
        if self.at("(") and word not in _NOT_NAMES:
            return self._call(token)
        if word in _NOT_NAMES:
            self.fail(-1)
        return syntax.Name((word,), token.start)

    def _type(self) -> str:
        depth, parts = 0, []
        while depth or not self.at(")"):
            token = self.next()
            if token.kind == "end":
                self.fail()
            depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(token.text, 0)
            parts.append(token.lower)
        self.expect(")")
        return "".join(parts)

    def _case(self, token: Token) -> syntax.Expression:
        parts = [] if self.at("when") else [self.expression()]
        name = "case" if parts else "when"
        while self.accept("when"):
            parts.append(self.expression())
            self.expect("then")
            parts.append(self.expression())
        if self.accept("else"):
            parts.append(self.expression())
        self.expect("end")
        return syntax.Call(name, tuple(parts), token.start)

    def _call(self, token: Token) -> syntax.Call:
        self.expect("(")
        distinct = bool(self.accept("distinct"))
        name = token.lower
        if name == "extract" or (name in ("floor", "ceil") and self.peek(1).lower == "to"):
            name = self.next().lower
            self.next()
        arguments = self._arguments()
        window = self._window() if self.accept("over") else None
        return syntax.Call(name, arguments, token.start, distinct, window)

    def _arguments(self) -> tuple[syntax.Expression, ...]:
        found: list[syntax.Expression] = []
        while not self.accept(")"):
            found.append(self.expression())
            if not self.at(")"):
                self.expect(",")
        return tuple(found)

    def _window(self) -> syntax.Window:
        if not self.accept("("):
            return syntax.Window((), (), self.identifier())
        partition_by: tuple[syntax.Expression, ...] = ()
        order_by: tuple[tuple[syntax.Expression, str], ...] = ()
        if self.accept("partition", "distribute"):
            self.expect("by")
            partition_by = self.listed(self.expression)
        if self.accept("order", "sort"):
            self.expect("by")
            order_by = self.listed(self.sort_key)
        frame = []
        while not self.accept(")"):
            if self.peek().kind == "end":
                self.fail()
            frame.append(self.next().lower)
        return syntax.Window(partition_by, order_by, " ".join(frame))

    def sort_key(self) -> tuple[syntax.Expression, str]:
        """Parses ``a DESC`` as a pair of an expression and ``+`` or ``-``."""
        key = self.expression()
        order = "-" if self.accept("desc") else "+"
        self.accept("asc")
        if self.accept("nulls"):
            self.next()
        return key, order

    def window_definition(self) -> syntax.Window:
        """Parses ``w AS (PARTITION BY ...)``."""
        self.identifier()
        self.expect("as")
        return self._window()
