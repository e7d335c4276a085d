"""An INSERT OVERWRITE that names one partition, and the same with dynamic partitions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Optional

from sqlglot import exp

from airflow_hive_opt.statement.added_rows import VALUES_OF_NULL
from airflow_hive_opt.statement.identifiers import BARE, quote
from airflow_hive_opt.statement.parse import Span, tree_of, why_unsupported
from airflow_hive_opt.statement.script import split_statements
from airflow_hive_opt.statement.tables import is_name

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_NUMBER = re.compile(r"0|-?[1-9]\d*")
_PARTS = ("this", "expression", "overwrite")  # of the syntax tree
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


@dataclass(frozen=True)
class OverwriteOfPartition:
    """The parts of the statement.

    ``head`` is its text up to the ``table``, which is quoted, and ``query`` its text after the
    partition, with a line break for each one before it. ``partition`` has the partition's columns
    as they are written, with their values.
    """

    head: str
    table: str
    partition: tuple[tuple[str, str], ...]
    query: str

    def named(self, partition: Mapping[str, str]) -> OverwriteOfPartition:
        """The statement with the partition's columns and values in this order."""
        return replace(self, partition=tuple(partition.items()))

    def with_dynamic_partition(self, types: Mapping[str, str]) -> str:
        r"""The statement with a dynamic partition and Spark's dynamic overwrite.

        ``types`` are those of the partition's columns. Only the last one is dynamic: Spark fetches
        all partitions that have the other values. Spark 4 knows the option; it holds for this
        statement alone. Without it, Spark would empty all of these partitions, so its plan must
        show it. If the query returns no row, nothing changes. The query has its own lines, which
        Spark's errors name. A list of columns would match the fields of nested types by name.

        >>> found = overwrite_of_partition("INSERT OVERWRITE t PARTITION (d='1')\nSELECT a FROM s")
        >>> print(found.with_dynamic_partition({"d": "string"}))  # doctest: +NORMALIZE_WHITESPACE
        INSERT OVERWRITE `t` WITH ('partitionOverwriteMode' = 'dynamic') PARTITION (`d`)
        SELECT *, CAST('1' AS STRING) FROM (
        SELECT a FROM s
        )
        """
        last, value = self.partition[-1]
        spec = ", ".join([*self._equal(self.partition[:-1]), quote(last)])
        return (
            f"{self.head}{self.table} WITH ('partitionOverwriteMode' = 'dynamic') "
            f"PARTITION ({spec}) SELECT *, CAST('{value}' AS {types[last].upper()}) FROM "
            f"({self.query}\n)"
        )

    def emptied(self, table: str, columns: Sequence[str]) -> str:
        """A statement that empties the partition of the same ``table``.

        >>> found = overwrite_of_partition("INSERT OVERWRITE t PARTITION (d = '1') SELECT a FROM s")
        >>> found.emptied("d.t", ["a"])
        "INSERT OVERWRITE d.t PARTITION (`d` = '1') SELECT NULL WHERE false"
        """
        nothing = ", ".join("NULL" for _ in columns)
        return f"INSERT OVERWRITE {table} {self.spec} SELECT {nothing} WHERE false"

    @property
    def spec(self) -> str:
        """The partition in SQL, with its values as strings.

        >>> overwrite_of_partition("INSERT OVERWRITE t PARTITION (n = 1) SELECT a FROM s").spec
        "PARTITION (`n` = '1')"
        """
        return f"PARTITION ({', '.join(self._equal(self.partition))})"

    @property
    def fetched_spec(self) -> str:
        """The partitions that Spark fetches for a dynamic overwrite; empty for all of the table."""
        values = self._equal(self.partition[:-1])
        return f"PARTITION ({', '.join(values)})" if values else ""

    @staticmethod
    def _equal(values: Sequence[tuple[str, str]]) -> list[str]:
        return [f"{quote(name)} = '{value}'" for name, value in values]


def overwrite_of_partition(sql: str) -> Optional[OverwriteOfPartition]:
    r"""The parts of an INSERT OVERWRITE that gives its partition's values as plain constants.

    ``None`` for another statement, and for one with a list of columns, with ``BY NAME`` or ``IF NOT
    EXISTS``, or with a name or value that may be another one in the partition's folder.

    >>> overwrite_of_partition("INSERT OVERWRITE TABLE d.t PARTITION (day='1') TABLE s")
    >>> overwrite_of_partition("INSERT OVERWRITE t PARTITION (day = '1', hour) SELECT 1, 2")
    >>> overwrite_of_partition("INSERT OVERWRITE t PARTITION (day = '1') (a) SELECT 1")
    >>> overwrite_of_partition("INSERT OVERWRITE t PARTITION (day = '1') BY NAME SELECT 1 AS a")
    >>> overwrite_of_partition("INSERT OVERWRITE t PARTITION (day = 'a b') SELECT 1")
    >>> overwrite_of_partition(r"INSERT OVERWRITE t PARTITION (day = '\61') SELECT 1")
    >>> overwrite_of_partition("INSERT OVERWRITE t PARTITION (`a:b` = '1') SELECT 1")
    >>> overwrite_of_partition("INSERT INTO t PARTITION (day = '1') SELECT 1")
    >>> found = overwrite_of_partition("WITH c AS (SELECT 1) INSERT OVERWRITE TABLE d.t "
    ...                                "PARTITION (day = '1', hour = 2) SELECT ';' FROM c; -- all")
    >>> found.head, found.table, found.partition
    ('WITH c AS (SELECT 1) INSERT OVERWRITE TABLE ', '`d`.`t`', (('day', '1'), ('hour', '2')))
    >>> found.query
    "SELECT ';' FROM c"
    """
    tree = tree_of(sql)
    if not isinstance(tree, exp.Insert) or why_unsupported(sql) is not None:
        return None
    target, span = tree.this, tree.this.meta.get("span")
    if not isinstance(target, exp.Table) or not is_name(target) or not isinstance(span, Span):
        return None
    if "\\" in span.of(sql):  # settings say what it means
        return None
    parts = {name for name, value in tree.args.items() if value}
    if not set(_PARTS) <= parts <= {*_PARTS, "with_"}:
        return None
    partition = target.args.get("partition")
    values = tuple(map(_constant, partition.expressions)) if partition is not None else ()
    found = tuple(value for value in values if value is not None)
    if not found or len(found) < len(values):
        return None
    statements = split_statements(sql)
    if len(statements) != 1:
        return None
    end = len(statements[0].before + statements[0].text)  # without a semicolon, and what is after
    name = ".".join(quote(part.name) for part in target.parts)
    rest = sql[span.stop : end]
    query = rest.lstrip()
    lines = (span.of(sql) + rest[: len(rest) - len(query)]).count("\n")
    return OverwriteOfPartition(sql[: span.start], name, found, "\n" * lines + query.rstrip())


def _constant(each: exp.Expression) -> tuple[str, str] | None:
    """The column and the value, if that is the same text in any type."""
    if not isinstance(each, exp.EQ) or not isinstance(each.expression, exp.Literal):
        return None
    name, value = each.this.name, each.expression.name
    if not BARE.fullmatch(name) or not BARE.fullmatch(value) or value in VALUES_OF_NULL:
        return None
    if not each.expression.is_string and not _NUMBER.fullmatch(value):
        return None
    return name, value


def is_canonical(value: str, type_: str) -> bool:
    """Whether a partition with this value in a column of this type has it in its folder's name.

    >>> is_canonical("01", "string"), is_canonical("01", "int"), is_canonical("1", "int")
    (True, False, True)
    >>> is_canonical("2026-01-31", "date"), is_canonical("2026-1-31", "date")
    (True, False)
    >>> is_canonical("2026-02-30", "date"), is_canonical("128", "tinyint")  # may become NULL
    (False, False)
    """
    if type_ == "string":
        return True
    if type_ == "date":
        return _is_day(value)
    if type_ not in _BITS or not _NUMBER.fullmatch(value):
        return False
    most = 1 << (_BITS[type_] - 1)
    return -most <= int(value) < most


def _is_day(value: str) -> bool:
    try:
        return _DAY.fullmatch(value) is not None and bool(date.fromisoformat(value))
    except ValueError:
        return False
