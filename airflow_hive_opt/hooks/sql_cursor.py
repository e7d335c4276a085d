"""The rows of a statement behind the interface of a database cursor (PEP 249)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_hive_opt.provider.airflow_compat import AirflowFailException
from airflow_hive_opt.provider.without_stack import without_stack


@dataclass(frozen=True)
class Rows:
    """The columns of a statement with their types in Spark, and its first rows.

    ``is_all`` says that there are no others. A statement without a result has no columns.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    values: list[tuple[Any, ...]]
    is_all: bool = True


class Cursor:
    """Runs statements by ``run``, which gets a text and its parameters, and fetches their rows.

    A statement with more rows than the limit is no error as long as nobody fetches more than that.
    Then it is one, because whoever fetches expects all rows.

    ``before`` is put before the next statements: spaces that keep their place in a script.
    """

    arraysize = 1
    rowcount = -1
    """Spark does not say how many rows a statement has changed."""

    def __init__(self, run: Callable[[str, Any], Rows]) -> None:
        self.before = ""
        self._run = run
        self._rows = Rows((), (), [])
        self._at = 0

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """Name and type of each column, or ``None`` if the statement has no result."""
        columns = zip(self._rows.columns, self._rows.types, strict=True)
        return [(name, kind, *(None,) * 5) for name, kind in columns] or None

    def execute(self, sql: str, parameters: Any = None, /, **named: Any) -> None:
        """Runs a statement; the values of its parameters may be named arguments, as in Polars."""
        self._rows, self._at = Rows((), (), []), 0
        self._rows = self._run(f"{self.before}{sql}", named or parameters or {})

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; ``None`` after the last one."""
        return next(iter(self.fetchmany(1)), None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next ``size`` rows, or those that are left."""
        return self._fetch(self._at + (self.arraysize if size is None else size))

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left; raises ``AirflowFailException`` if there are too many."""
        return self._fetch(None)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Fetches row by row."""
        while (row := self.fetchone()) is not None:
            yield row

    def close(self) -> None:
        """Forgets the rows."""
        self._rows = Rows((), (), [])

    def _fetch(self, stop: int | None) -> list[tuple[Any, ...]]:
        values = self._rows.values
        if not self._rows.is_all and (stop is None or stop > len(values)):
            message = (
                f"the statement has more than {len(values):,} rows, the limit of max_rows: set a "
                "higher max_rows in the connection's extra or in hook_params, write LIMIT, or let "
                "an INSERT write the rows to a table"
            )
            raise without_stack(AirflowFailException(message))
        found = [tuple(map(plain_value, row)) for row in values[self._at : stop]]
        self._at += len(found)
        return found


def plain_value(value: Any) -> Any:
    """A value without classes of PySpark, for XCom: a struct is a dictionary.

    >>> from pyspark.sql import Row
    >>> plain_value([Row(a=1, b=Row(c=bytearray(b"d")))])
    [{'a': 1, 'b': {'c': b'd'}}]
    """
    if isinstance(value, tuple) and hasattr(value, "__fields__"):
        return {name: plain_value(each) for name, each in zip(value.__fields__, value, strict=True)}
    if isinstance(value, list):
        return [plain_value(each) for each in value]
    if isinstance(value, Mapping):
        return {plain_value(key): plain_value(each) for key, each in value.items()}
    return bytes(value) if isinstance(value, bytearray) else value
