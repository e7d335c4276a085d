"""The protocols by which the parts of a translation call each other."""

from __future__ import annotations

from typing import Protocol

from sqlglot import exp

from airflow_hive_opt.worker.translation.relations import Query, Relation, Scope
from airflow_hive_opt.worker.translation.typed import Typed
from airflow_hive_opt.worker.translation.work import Work
from airflow_hive_opt.worker.types import SqlType


class Subqueries(Protocol):
    """Translates queries. All methods raise ``NotUnderstood``.

    With ``monotone``, a query may return more rows than the statement's, and a row another number
    of times. ``outer`` has columns of the query around it.
    """

    @property
    def work(self) -> Work:
        """The state of the translation."""

    def query(self, node: exp.Expr, outer: Scope | None, monotone: bool) -> Query:
        """A query of any form."""

    def single_column(self, node: exp.Expr, outer: Scope | None, monotone: bool) -> Query:
        """A query with one output column."""

    def relation(self, node: exp.Expr, monotone: bool) -> Relation:
        """An item of FROM."""


class Arguments(Protocol):
    """Translates the arguments of functions. All methods raise ``NotUnderstood``."""

    work: Work

    def operand(self, node: exp.Expr) -> Typed:
        """A value of any type; a predicate must be in parentheses."""

    def typed(self, node: exp.Expr, type_: SqlType) -> Typed:
        """A value of the type, or NULL."""

    def date(self, node: exp.Expr) -> Typed:
        """A date, or a text literal that is one."""

    def condition(self, node: exp.Expr) -> str:
        """A condition."""

    def cases(self, tests: list[str], values: list[Typed]) -> Typed:
        """CASE with a value for each test and one for ELSE, all of one type."""

    def same(self, values: list[Typed]) -> tuple[list[str], SqlType]:
        """Values of which one is chosen, as one type."""

    def moved(self, value: Typed, by: int, unit: str) -> Typed:
        """A date plus a number of units."""
