"""What users switch on and off in the planner, besides Hive's own settings.

Each switch is an argument of the operators and a flag of the command line. Its value may be text,
as templates and ``SET`` lines give it. :data:`OLD_NAMES` are accepted as settings too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Switches:
    """The values in effect.

    - ``partition_pruning``: on, because a user of the operator wants pruning.
    - ``key_predicate``: keys on data columns. Off, because it has only overhead if files are not
      clustered by the key.
    - ``python_functions``: keys may depend on Python functions. Off, because an author may have
      forgotten to declare a function random.
    - ``planning_seconds``: processor seconds after which a statement passes through.
    """

    partition_pruning: bool = True
    key_predicate: bool = False
    python_functions: bool = False
    planning_seconds: int = 2

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Switches:
        """The defaults, replaced by ``given``; raises ``ValueError`` for a wrong name or value."""
        return cls(**{name: switch(name, value) for name, value in given.items()})


SWITCHES = tuple(each.name for each in fields(Switches))
OLD_NAMES = {
    "hive.optimize.mapjoin.partition.pruning": "partition_pruning",
    "hive.optimize.mapjoin.key.predicate": "key_predicate",
    "hive.optimize.mapjoin.python.functions": "python_functions",
    "hive.optimize.mapjoin.planning.seconds": "planning_seconds",
}
"""The arguments by the names of the settings that they replace; a new switch gets no such name."""

_KINDS = {
    bool: "true or false",
    int: "a whole number of at least 0",
}


def switch(name: str, given: object, called: str = "") -> Any:
    """The typed value of a switch; an error names it ``called``. Raises ``ValueError``.

    >>> switch("key_predicate", " True ")
    True
    >>> switch("planning_seconds", -1)
    Traceback (most recent call last):
    ValueError: planning_seconds must be a whole number of at least 0, not -1
    """
    if name not in SWITCHES:
        raise ValueError(f"{name} is none of {', '.join(SWITCHES)}")
    kind = type(getattr(Switches, name))
    word = str(given).strip().lower()
    if kind is bool and word in ("true", "false"):
        return word == "true"
    if kind is int and word.isdecimal():
        return int(word)
    raise ValueError(f"{called or name} must be {_KINDS[kind]}, not {given!r}")
