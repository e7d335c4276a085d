"""Checks of arguments that all entry points share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal

_BOUND = (
    str,
    int,
    float,
    Decimal,
    date,
    timedelta,
    bytes,
    bytearray,
    list,
    tuple,
    dict,
    type(None),
)


def whole_number(name: str, value: object, least: int = 0) -> None:
    """Raises ``ValueError`` unless ``value`` is a whole number of at least ``least``.

    >>> whole_number("max_keys", "10", 1)
    Traceback (most recent call last):
    ValueError: max_keys must be a whole number, not '10'
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")


def parameters_of_sql(parameters: object) -> None:
    """Raises ``ValueError`` unless Spark can bind the values to a statement's parameter markers.

    >>> parameters_of_sql({"day": object})
    Traceback (most recent call last):
    ValueError: the parameter day must be text, a number, a date or the like, not <class 'object'>
    """
    named_values("parameters", parameters)
    assert isinstance(parameters, Mapping)
    for name, value in parameters.items():
        too_large = isinstance(value, int) and not -(1 << 63) <= value < 1 << 63
        if too_large or not isinstance(value, _BOUND):
            raise ValueError(
                f"the parameter {name} must be text, a number, a date or the like, not {value!r}"
            )
        if isinstance(value, dict):
            named_values(f"the parameter {name}", value)


def named_values(name: str, value: object) -> None:
    """Raises ``ValueError`` unless ``value`` is a mapping whose keys are names.

    >>> named_values("parameters", [1])
    Traceback (most recent call last):
    ValueError: parameters must be a dictionary with names for keys, not [1]
    """
    if not isinstance(value, Mapping) or not all(isinstance(key, str) and key for key in value):
        raise ValueError(f"{name} must be a dictionary with names for keys, not {value!r}")
