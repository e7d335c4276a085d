"""Hive's settings by Hive's names, with Hive's defaults."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_hive_opt.statement.switches import OLD_NAMES, Switches, switch

CORRELATION = "hive.optimize.correlation"
SMALL_TABLE_FILESIZE = "hive.mapjoin.smalltable.filesize"

# Accepted because scripts for Hive set them. They change neither the plan nor the run.
_WITHOUT_EFFECT = {
    "hive.auto.convert.sortmerge.join.bigtable.selection.policy": (
        "org.apache.hadoop.hive.ql.optimizer.AvgPartitionSizeBasedBigTableSelectorForAutoSMJ"
    ),
    "hive.enforce.sortmergebucketmapjoin": "false",
    "hive.exec.reducers.max": "1009",
    "hive.fetch.task.aggr": "false",
    "hive.outerjoin.supports.filters": "true",
    "hive.strict.checks.bucketing": "true",
    "hive.strict.checks.type.safety": "true",
    "mapred.reduce.tasks": "-1",
}
DEFAULTS: Mapping[str, str] = {
    **_WITHOUT_EFFECT,
    SMALL_TABLE_FILESIZE: "25000000",
    "hive.auto.convert.join": "true",
    "hive.auto.convert.join.noconditionaltask": "true",
    "hive.auto.convert.join.noconditionaltask.size": "10000000",
    "hive.auto.convert.sortmerge.join": "false",
    "hive.auto.convert.sortmerge.join.to.mapjoin": "false",
    "hive.compute.query.using.stats": "true",
    "hive.fetch.task.conversion": "more",
    "hive.fetch.task.conversion.threshold": "1073741824",
    "hive.groupby.skewindata": "false",
    "hive.ignore.mapjoin.hint": "true",
    "hive.map.aggr": "true",
    "hive.map.groupby.sorted": "true",
    # Not set in Hive: the hive.strict.checks settings apply instead.
    "hive.mapred.mode": "",
    "hive.merge.mapfiles": "true",
    "hive.merge.mapredfiles": "false",
    "hive.merge.nway.joins": "true",
    "hive.multigroupby.singlereducer": "true",
    "hive.optimize.bucketmapjoin": "false",
    "hive.optimize.bucketmapjoin.sortedmerge": "false",
    "hive.optimize.constant.propagation": "true",
    CORRELATION: "false",
    "hive.optimize.ppd": "true",
    "hive.optimize.reducededuplication": "true",
    "hive.optimize.reducededuplication.min.reducer": "4",
    "hive.ppd.recognizetransivity": "true",
    "hive.ppd.remove.duplicatefilters": "true",
    "hive.stats.autogather": "true",
    "hive.strict.checks.cartesian.product": "true",
    "hive.strict.checks.large.query": "false",
}
_WORDS = {
    # Hive has no "auto": rewrite the statement if a gain on Spark is expected.
    CORRELATION: ("false", "true", "auto"),
    "hive.mapred.mode": ("", "strict", "nonstrict"),
    "hive.fetch.task.conversion": ("none", "minimal", "more"),
}


@dataclass(frozen=True)
class Settings:
    """Values by name, and the planner's switches.

    ``warnings`` has a sentence for every wrong name or value, and for every old name of a switch.
    """

    values: Mapping[str, str] = field(default_factory=lambda: dict(DEFAULTS))
    warnings: tuple[str, ...] = ()
    switches: Switches = field(default_factory=Switches)

    @classmethod
    def of(
        cls,
        overrides: Mapping[str, object] | None = None,
        switches: Mapping[str, object] | None = None,
        script: Mapping[str, object] | None = None,
    ) -> Settings:
        """The defaults, replaced by ``overrides``, then ``switches``, then ``script``.

        ``script`` has the ``SET`` lines of the statement. Raises ``ValueError`` for a wrong switch.

        >>> print(*Settings.of({"hive.mapjoin.filesize": 1}).warnings)
        unknown setting hive.mapjoin.filesize, did you mean hive.mapjoin.smalltable.filesize?
        """
        values, chosen = dict(DEFAULTS), dict[str, object]()
        warnings, old = [], dict[str, str]()
        for given, arguments in ((overrides or {}, switches or {}), (script or {}, {})):
            for name, value in given.items():
                key = _key(name)
                if mistake := _mistake(name, value):
                    kept = f", so it is {DEFAULTS[key] or 'not set'}" if key in DEFAULTS else ""
                    warnings.append(mistake + kept)
                elif key in OLD_NAMES:
                    chosen[OLD_NAMES[key]], old[OLD_NAMES[key]] = value, key
                else:
                    values[key] = _text(value)
            chosen.update(arguments)
        own = Switches.of(chosen)
        for name, key in old.items():
            effect = f"in effect: {name}={getattr(own, name)!r}"
            warnings.append(f"the argument {name} replaces the setting {key} ({effect})")
        return cls(values, tuple(warnings), own)

    @classmethod
    def for_run(
        cls,
        hive_conf: Mapping[str, object] | None = None,
        switches: Mapping[str, object] | None = None,
        script: Mapping[str, object] | None = None,
    ) -> Settings:
        """The settings of a run: ``hive.optimize.correlation`` is ``auto`` unless it is set.

        An unknown name in a SET line is a setting of Spark; an unknown name in ``hive_conf`` is a
        mistake. Raises ``ValueError`` with a sentence for every mistake.

        >>> Settings.for_run().values[CORRELATION], Settings.of().values[CORRELATION]
        ('auto', 'false')
        >>> Settings.for_run(script={"hive.exec.parallel": "true", "hive.map.aggr": "maybe"})
        Traceback (most recent call last):
        ValueError: setting hive.map.aggr must be true or false, not 'maybe'
        """
        known = {name: value for name, value in (script or {}).items() if _is_known(name)}
        mistakes = [*_mistakes(hive_conf or {}), *_mistakes(known)]
        if mistakes:
            raise ValueError("; ".join(mistakes))
        return cls.of({CORRELATION: "auto", **(hive_conf or {})}, switches, known)

    @staticmethod
    def of_session(session: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """Hive's settings among those of a session, and the switches by the arguments' names.

        >>> Settings.of_session({"hive.map.aggr": "false", "spark.app.name": "a"})
        ({'hive.map.aggr': 'false'}, {})
        >>> Settings.of_session({"hive.optimize.mapjoin.partition.pruning": "false"})
        ({}, {'partition_pruning': 'false'})
        """
        known = {_key(name): value for name, value in session.items() if _is_known(name)}
        switches = {OLD_NAMES[key]: value for key, value in known.items() if key in OLD_NAMES}
        return {key: value for key, value in known.items() if key in DEFAULTS}, switches

    def is_on(self, name: str) -> bool:
        """Whether a true/false setting is true."""
        return self.values[name] == "true"

    def number(self, name: str) -> int:
        """The value of a setting that is a whole number."""
        return int(self.values[name])

    def forbids(self, check: str) -> bool:
        """Whether a ``hive.strict.checks`` setting is active; ``hive.mapred.mode`` overrides it.

        >>> Settings.of().forbids("hive.strict.checks.cartesian.product")
        True
        >>> loose = Settings.of({"hive.mapred.mode": "nonstrict"})
        >>> loose.forbids("hive.strict.checks.cartesian.product")
        False
        """
        mode = self.values["hive.mapred.mode"]
        return mode == "strict" if mode else self.is_on(check)


def _mistakes(given: Mapping[str, object]) -> list[str]:
    return [found for name, value in given.items() if (found := _mistake(name, value))]


def _mistake(name: str, value: object) -> str | None:
    key = _key(name)
    if not _is_known(name):
        near = difflib.get_close_matches(key, [*DEFAULTS, *OLD_NAMES], n=1, cutoff=0.0)[0]
        return f"unknown setting {name}, did you mean {near}?"
    if key in OLD_NAMES:
        try:
            switch(OLD_NAMES[key], value, f"setting {name}")
        except ValueError as error:
            return str(error)
    elif not _valid(key, _text(value)):
        return f"setting {name} must be {_kind(key)}, not {_text(value)!r}"
    return None


def _is_known(name: str) -> bool:
    return _key(name) in DEFAULTS or _key(name) in OLD_NAMES


def _key(name: str) -> str:
    return name.strip().lower()


def _text(value: object) -> str:
    return str(value).strip().lower()


def _kind(key: str) -> str:
    if key in _WORDS:
        return " or ".join(word for word in _WORDS[key] if word)
    return "true or false" if DEFAULTS[key] in ("true", "false") else "a whole number"


def _valid(key: str, value: str) -> bool:
    default = DEFAULTS[key]
    if key in _WORDS:
        return value in _WORDS[key]
    if default in ("true", "false"):
        return value in ("true", "false")
    return default.startswith("org.") or value.removeprefix("-").isdecimal()
