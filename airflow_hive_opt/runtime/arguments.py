"""What every surface checks of the arguments that it is given."""

from __future__ import annotations

from collections.abc import Mapping


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


def named_values(name: str, value: object) -> None:
    """Raises ``ValueError`` unless ``value`` is a mapping whose keys are names.

    >>> named_values("parameters", [1])
    Traceback (most recent call last):
    ValueError: parameters must be a dictionary with names for keys, not [1]
    """
    if not isinstance(value, Mapping) or not all(isinstance(key, str) and key for key in value):
        raise ValueError(f"{name} must be a dictionary with names for keys, not {value!r}")
