"""Partition names in the metastore's form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from airflow_hive_opt.metastores.partitions import DEFAULT_PARTITION, Value
from airflow_hive_opt.statement.catalog import Column
from airflow_hive_opt.statement.identifiers import BARE
from airflow_hive_opt.statement.zip_strict import zip_strict

# The characters that Hive's FileUtils.escapePathName escapes.
_ESCAPED = re.compile(r"""[\x01-\x1f\x7f"#%'*/:=?\\{[\]^]""")


def partition_name(columns: Sequence[str], values: Sequence[str | None]) -> str:
    """The name of a partition.

    :func:`~airflow_hive_opt.metastores.partitions.parse_name` parses it.

    >>> partition_name(("ds", "n"), ("a/b c", None))
    'ds=a%2Fb c/n=__HIVE_DEFAULT_PARTITION__'
    """
    return "/".join(
        f"{_escape(column)}={_escape(value) if value else DEFAULT_PARTITION}"
        for column, value in zip_strict(columns, values)
    )


def names_of(
    columns: Sequence[Column], positions: Sequence[int], tuples: Iterable[tuple[Value, ...]]
) -> list[str] | None:
    """The names of the partitions with these values, or ``None`` if they are ambiguous.

    The names are certain only if every partition column has a value and is text. A number can have
    several names, such as ``08`` and ``8``.

    >>> names_of([Column("ds", "string")], [0], [("2024-01-31",)])
    ['ds=2024-01-31']
    >>> names_of([Column("a", "string"), Column("b", "string")], [1, 0], [("y", "x")])
    ['a=x/b=y']
    >>> names_of([Column("n", "int")], [0], [(8,)])
    """
    if sorted(positions) != list(range(len(columns))):
        return None
    if any(column.type != "string" or not BARE.fullmatch(column.name) for column in columns):
        return None
    order = [list(positions).index(at) for at in range(len(columns))]
    named = [column.name for column in columns]
    names = []
    for row in tuples:
        if not all(isinstance(value, str) and BARE.fullmatch(value) for value in row):
            return None
        names.append(partition_name(named, [str(row[at]) for at in order]))
    return names


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)
