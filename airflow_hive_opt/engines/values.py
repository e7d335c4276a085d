"""Values from the texts of a descriptor, by their Hive types.

A text that is no value of its type is refused: Spark would read it in its own way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal, InvalidOperation
from typing import TypeAlias
from zoneinfo import ZoneInfo

from airflow_hive_opt.documents.descriptor import RowFilter
from airflow_hive_opt.engines.scan import EngineError, PrunedScan
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.statement.types import INTEGER_BITS, TIMESTAMP

Value: TypeAlias = bool | int | str | date | Decimal
"""``datetime`` is a ``date``: with a time zone it is an instant, without one a wall clock."""

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
_VARCHAR = re.compile(r"varchar\(\d+\)")
_INTEGER = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CLOCK = re.compile(rf"({_DAY.pattern})(?: ([0-9]{{2}}(?::[0-9]{{2}}){{2}})(?:\.([0-9]{{1,6}}))?)?")
_BOOLEANS = {"true": True, "false": False}

_ALL_DIGITS = Context(prec=76)  # twice those of Spark's longest decimal


def value_of(text: str, type_: str) -> Value:
    """The value of a text; a TIMESTAMP is a wall clock. Raises ``ValueError``.

    >>> value_of("08", "int"), value_of("2024-01-31", "date"), value_of("1.2", "decimal(5,2)")
    (8, datetime.date(2024, 1, 31), Decimal('1.20'))
    """
    if type_ in INTEGER_BITS:
        return _integer(text, INTEGER_BITS[type_])
    if type_ == "string" or _VARCHAR.fullmatch(type_):
        return text
    if found := DECIMAL.fullmatch(type_):
        return _decimal(text, int(found[1]), int(found[2]))
    if type_ not in _READERS:
        raise ValueError(f"the type {type_} has no keys")
    return _READERS[type_](text)


def partition_values(scan: PrunedScan, partition: Partition) -> list[Value | None]:
    """The values of a partition's columns as Spark reads them: a TIMESTAMP is an instant.

    Raises :class:`EngineError`.
    """
    return [
        _instant(scan, name, found) if type_ == TIMESTAMP else found
        for name, type_, found in zip(
            scan.columns, scan.types, texts_read(scan, scan.columns, partition), strict=True
        )
    ]


def texts_read(
    scan: PrunedScan, columns: tuple[str, ...], partition: Partition
) -> list[Value | None]:
    """The values of some of a partition's columns; a TIMESTAMP is a wall clock.

    Raises :class:`EngineError`.
    """
    found: list[Value | None] = []
    for column in columns:
        at = scan.columns.index(column)
        text = partition.values[at]
        found.append(None if text is None else _read(scan, column, text, scan.types[at]))
    return found


def filter_values(scan: PrunedScan, found: RowFilter) -> list[Value]:
    """The values of a condition; a TIMESTAMP is an instant. Raises :class:`EngineError`."""
    type_ = "microseconds" if found.type == TIMESTAMP else found.type
    return [_read(scan, found.column, text, type_) for text in found.values]


def microseconds(instant: datetime) -> int:
    """The microseconds from 1970 in UTC to an instant."""
    return (instant - EPOCH) // timedelta(microseconds=1)


def _read(scan: PrunedScan, column: str, text: str, type_: str) -> Value:
    try:
        return value_of(text, type_)
    except (ValueError, OverflowError, InvalidOperation) as error:
        why = f"{text[:50]!a} is no {type_}" if isinstance(error, OverflowError) else error
        raise EngineError(
            f"{scan.table}.{column} has a value that only Spark reads: {why}"
        ) from None


def _instant(scan: PrunedScan, column: str, found: Value | None) -> Value | None:
    """The instant of a wall clock in the session's time zone, the earlier one if there are two."""
    if not isinstance(found, datetime):
        return found
    if scan.time_zone is None:
        raise EngineError(
            f"{scan.table}.{column} is a TIMESTAMP, and the descriptor does not have the time zone "
            "of Spark's session: give time_zone"
        )
    try:
        zone = ZoneInfo(scan.time_zone)
    except (KeyError, ValueError, OSError):  # Spark also has offsets
        raise EngineError(f"the time zone {scan.time_zone} is not known here") from None
    return found.replace(tzinfo=zone).astimezone(timezone.utc)


def _integer(text: str, bits: int) -> int:
    _check_form(text, _INTEGER, "integer")
    found = int(text)
    if not -(1 << bits - 1) <= found < 1 << bits - 1:
        raise ValueError(f"{text[:50]!a} is no integer of {bits} bits")
    return found


def _decimal(text: str, precision: int, scale: int) -> Decimal:
    _check_form(text, _NUMBER, "decimal")
    given = Decimal(text)
    try:
        found = given.quantize(Decimal(1).scaleb(-scale), context=_ALL_DIGITS)
    except InvalidOperation:
        raise ValueError(f"{text[:50]!a} is no decimal({precision},{scale})") from None
    if found != given or len(found.as_tuple().digits) > precision:
        raise ValueError(f"{text[:50]!a} is no decimal({precision},{scale})")
    return found


def _boolean(text: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise ValueError(f"{text[:50]!a} is no boolean")
    return _BOOLEANS[text.lower()]


def _date(text: str) -> date:
    _check_form(text, _DAY, "date")
    return date.fromisoformat(text)


def _wall_clock(text: str) -> datetime:
    found = _check_form(text, _CLOCK, "timestamp without time zone")
    day, time, fraction = found[1], found[2] or "00:00:00", found[3] or ""
    return datetime.fromisoformat(f"{day} {time}.{fraction:0<6}")


def _check_form(text: str, form: re.Pattern[str], name: str) -> re.Match[str]:
    """Python reads more forms of a value than Spark."""
    found = form.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:50]!a} is no {name}")
    return found


def _since_epoch(text: str) -> datetime:
    return EPOCH + timedelta(microseconds=int(text))


_READERS: dict[str, Callable[[str], Value]] = {
    "boolean": _boolean,
    "date": _date,
    "timestamp": _wall_clock,
    "microseconds": _since_epoch,
}
