"""What users switch on and off in the planner, besides Hive's own settings.

Each switch is an argument of the operators and a flag of the command line. Its value may be text,
as templates and ``SET`` lines give it. Before, the switches were settings, with names like Hive's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from airflow_hive_opt.statement.lake_formats import LAKE_FORMATS, UNTESTED_FORMATS


@dataclass(frozen=True)
class Switches:
    """The values in effect.

    - ``partition_pruning``: on, because a user of the operator wants pruning.
    - ``key_predicate``: keys on data columns. Off, because it has only overhead if files are not
      clustered by the key.
    - ``untested_formats``: formats against which no test has run, but whose tables keys restrict.
    - ``python_functions``: keys may depend on Python functions. Off, because an author may have
      forgotten to declare a function random.
    - ``planning_seconds``: processor seconds after which a statement passes through.
    """

    partition_pruning: bool = True
    key_predicate: bool = False
    untested_formats: tuple[str, ...] = ()
    python_functions: bool = False
    planning_seconds: int = 2

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Switches:
        """The defaults, replaced by ``given``; raises ``ValueError`` for a wrong name or value."""
        return cls(**{name: switch(name, value) for name, value in given.items()})

    def restricts(self, format_: str) -> bool:
        """Whether keys may become conditions on tables of a format with its own list of files.

        >>> [Switches().restricts(each) for each in ("iceberg", "delta", "hudi")]
        [True, True, False]
        >>> Switches(untested_formats=("hudi",)).restricts("hudi")
        True
        """
        return format_ not in UNTESTED_FORMATS or format_ in self.untested_formats


SWITCHES = tuple(each.name for each in fields(Switches))
OLD_NAMES = {f"hive.optimize.mapjoin.{name.replace('_', '.')}": name for name in SWITCHES}
"""The arguments by the names of the settings that they replace."""

_KINDS = {
    bool: "true or false",
    int: "a whole number of at least 0",
    tuple: f"names of formats ({', '.join(LAKE_FORMATS)}), separated by commas",
}


def switch(name: str, given: object, called: str = "") -> Any:
    """The typed value of a switch; an error names it ``called``. Raises ``ValueError``.

    >>> switch("untested_formats", "Delta, hudi"), switch("key_predicate", "true")
    (('delta', 'hudi'), True)
    >>> switch("planning_seconds", -1)
    Traceback (most recent call last):
    ValueError: planning_seconds must be a whole number of at least 0, not -1
    """
    if name not in SWITCHES:
        raise ValueError(f"{name} is none of {', '.join(SWITCHES)}")
    kind = type(getattr(Switches, name))
    items = given if isinstance(given, (list, tuple)) else str(given).split(",")
    words = tuple(word for each in items if (word := str(each).strip().lower()))
    if kind is tuple and all(word in LAKE_FORMATS for word in words):
        return words
    if kind is bool and words in (("true",), ("false",)):
        return words == ("true",)
    if kind is int and len(words) == 1 and words[0].isdecimal():
        return int(words[0])
    raise ValueError(f"{called or name} must be {_KINDS[kind]}, not {given!r}")
