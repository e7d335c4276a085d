"""Enumerations whose members are strings."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):
    from enum import StrEnum
else:
    from enum import Enum

    class StrEnum(str, Enum):
        """The ``StrEnum`` of the standard library, which Python has since 3.11."""

        __str__ = str.__str__
        __format__ = str.__format__  # type: ignore[assignment]


__all__ = ("StrEnum",)
