"""Which columns a statement may read, by what it writes."""

from __future__ import annotations

import re

from sqlglot import exp

from airflow_hive_opt.planner.catalog import Table

_WORD = re.compile(r"\w+")


class NamesWritten:
    """The names in a statement, to tell the columns of a table that it can't be reading.

    >>> from airflow_hive_opt.planner.parse import parse
    >>> from airflow_hive_opt.planner.rules.example import CATALOG
    >>> days, sql = CATALOG.table("days"), "SELECT count(*) FROM days WHERE Year = 2000"
    >>> NamesWritten(sql, parse(sql)).columns(days)
    ('year',)
    """

    def __init__(self, sql: str, tree: exp.Expr) -> None:
        self._text = sql.lower()
        self._words = frozenset(_WORD.findall(self._text))
        self._all = (
            any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star))
            # these take columns that nobody names
            or tree.find(exp.Pivot) is not None
            or any(join.method == "NATURAL" for join in tree.find_all(exp.Join))
        )

    def columns(self, table: Table) -> tuple[str, ...]:
        """The table's columns that the statement may read: all that it names anywhere."""
        return tuple(
            column.name for column in table.all_columns if self._all or self._has(column.name)
        )

    def _has(self, name: str) -> bool:
        if _WORD.fullmatch(name):
            return name in self._words
        return name.replace("`", "``") in self._text
