"""Checks of arguments that all entry points share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal

_NUMBERS = (int, float, Decimal)
_BOUND = (*_NUMBERS, str, date, timedelta, bytes, bytearray, list, tuple, dict, type(None))


def check_whole_number(name: str, value: object, least: int = 0) -> None:
    """Raises ``ValueError`` unless ``value`` is a whole number of at least ``least``.

    >>> check_whole_number("max_keys", "10", 1)
    Traceback (most recent call last):
    ValueError: max_keys must be a whole number, not '10'
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")


def check_parameters(parameters: object) -> None:
    """Raises ``ValueError`` unless Spark can bind the values to a statement's parameter markers.

    >>> check_parameters({"day": object})
    Traceback (most recent call last):
    ValueError: the parameter day must be text, a number, a date or the like, not <class 'object'>
    """
    check_named_values("parameters", parameters)
    assert isinstance(parameters, Mapping)
    for name, value in parameters.items():
        too_large = isinstance(value, int) and not -(1 << 63) <= value < 1 << 63
        if too_large or not isinstance(value, _BOUND):
            raise ValueError(
                f"the parameter {name} must be text, a number, a date or the like, not {value!r}"
            )
        if isinstance(value, dict):
            check_named_values(f"the parameter {name}", value)


def check_named_values(name: str, value: object) -> None:
    """Raises ``ValueError`` unless ``value`` is a mapping whose keys are names.

    >>> check_named_values("parameters", [1])
    Traceback (most recent call last):
    ValueError: parameters must be a dictionary with names for keys, not a list
    """
    wanted = f"{name} must be a dictionary with names for keys"  # its values may be secrets
    if not isinstance(value, Mapping):
        raise ValueError(f"{wanted}, not a {type(value).__name__}")
    for key in value:
        if not isinstance(key, str) or not key:
            raise ValueError(f"{wanted}, and {key!r} is none")
