"""Hive's settings by Hive's names, with Hive's defaults."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

PARTITION_PRUNING = "hive.optimize.mapjoin.partition.pruning"
SMALL_TABLE_FILESIZE = "hive.mapjoin.smalltable.filesize"

DEFAULTS: Mapping[str, str] = {
    # HIVE-5119 left this name to be determined. On: asking for the operator is asking for it.
    PARTITION_PRUNING: "true",
    SMALL_TABLE_FILESIZE: "25000000",
}


@dataclass(frozen=True)
class Settings:
    """Values by name; ``warnings`` has one sentence for every setting that was not understood."""

    values: Mapping[str, str] = field(default_factory=lambda: dict(DEFAULTS))
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, overrides: Mapping[str, object] | None = None) -> Settings:
        """Defaults with ``overrides`` laid over them.

        >>> print(*Settings.of({"hive.mapjoin.filesize": 1}).warnings)
        unknown setting hive.mapjoin.filesize, did you mean hive.mapjoin.smalltable.filesize?
        """
        values = dict(DEFAULTS)
        warnings = []
        for name, value in (overrides or {}).items():
            key, text = name.strip().lower(), _text(value)
            if key not in DEFAULTS:
                near = difflib.get_close_matches(key, DEFAULTS, n=1, cutoff=0.0)[0]
                warnings.append(f"unknown setting {name}, did you mean {near}?")
            elif not _valid(DEFAULTS[key], text):
                kind = "true or false" if DEFAULTS[key] in ("true", "false") else "a whole number"
                warnings.append(
                    f"setting {name} must be {kind}, not {text!r}: using {DEFAULTS[key]}"
                )
            else:
                values[key] = text
        return cls(values, tuple(warnings))

    def is_on(self, name: str) -> bool:
        """A true/false setting."""
        return self.values[name] == "true"

    def number(self, name: str) -> int:
        """A setting that is a whole number."""
        return int(self.values[name])


def _text(value: object) -> str:
    return str(value).strip().lower()


def _valid(default: str, value: str) -> bool:
    if default in ("true", "false"):
        return value in ("true", "false")
    return value.removeprefix("-").isdecimal()
