"""Whether the rows that an engine merges into a table have no other keys than the descriptor's.

A row with another key could match rows outside the condition. It would then be inserted twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.descriptor import RowFilter
from airflow_hive_opt.engines.scan import EngineError, PrunedScan
from airflow_hive_opt.engines.values import filter_values

if TYPE_CHECKING:
    import pyarrow as pa

_NAME = re.compile(r"(?:`(?:[^`]|``)*`\.)?`((?:[^`]|``)*)`")


def check_covered(scan: PrunedScan, rows: pa.Table) -> None:
    """Raises :class:`~airflow_hive_opt.engines.scan.EngineError` if ``rows`` have other keys.

    The scan must be that of MERGE's target. A NULL equals nothing, so it needs no key.
    """
    if len(scan.alternatives) != 1:
        raise EngineError(f"the descriptor has not one list of keys for {scan.table}")
    for found in scan.alternatives[0]:
        if found.guard is None:
            raise EngineError(
                f"the keys of {scan.table}.{found.column} are not those of a MERGE's source"
            )
        name = _column(found.guard)
        if name is None:
            raise EngineError(
                f"the keys of {scan.table}.{found.column} are of the expression {found.guard}, "
                "which only Spark can check"
            )
        if name not in rows.column_names:
            raise EngineError(f"the rows to merge have no column {name}, by which keys were read")
        known = _known(scan, found)
        for value in rows.column(name).unique().to_pylist():
            if value is not None and not known(value):
                raise EngineError(
                    f"the rows to merge have {name} = {str(value)[:50]}, which was no key of "
                    f"{scan.table} when the keys were read: run the local task again"
                )


def _known(scan: PrunedScan, found: RowFilter) -> Callable[[Any], bool]:
    values: list[Any] = filter_values(scan, found)
    if not found.is_range:
        return set(values).__contains__
    ranges = list(zip(values[::2], values[1::2], strict=True))
    return lambda value: any(low <= value <= high for low, high in ranges)


def _column(guard: str) -> str | None:
    """The column of a name in backquotes, or ``None`` for another expression.

    >>> _column("`s`.`day`"), _column("`s`.`a``b`"), _column("to_date(`s`.`day`)")
    ('day', 'a`b', None)
    """
    found = _NAME.fullmatch(guard)
    return None if found is None else found[1].replace("``", "`")
