"""Hive's settings by Hive's names, with Hive's defaults."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_hive_opt.statement.lake_formats import UNTESTED_FORMATS

PARTITION_PRUNING = "hive.optimize.mapjoin.partition.pruning"
KEY_PREDICATE = "hive.optimize.mapjoin.key.predicate"
CORRELATION = "hive.optimize.correlation"
PLANNING_SECONDS = "hive.optimize.mapjoin.planning.seconds"
UNTESTED = "hive.optimize.mapjoin.untested.formats"
PYTHON_FUNCTIONS = "hive.optimize.mapjoin.python.functions"
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
    # HIVE-5119 does not define this name. On: a user of the operator wants pruning.
    PARTITION_PRUNING: "true",
    # Not a setting of Hive. Off: it has only overhead if files are not clustered by the key.
    KEY_PREDICATE: "false",
    # Not a setting of Hive. Processor seconds, after which a statement passes through.
    PLANNING_SECONDS: "2",
    # Not a setting of Hive. Empty: no test has run against tables of these formats.
    UNTESTED: "",
    # Not a setting of Hive. Off: an author may have forgotten to declare a function random.
    PYTHON_FUNCTIONS: "false",
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
# Settings that take any number of these words, separated by commas.
_LISTS = {UNTESTED: UNTESTED_FORMATS}


@dataclass(frozen=True)
class Settings:
    """Values by name; ``warnings`` has a sentence for every wrong name or value."""

    values: Mapping[str, str] = field(default_factory=lambda: dict(DEFAULTS))
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, overrides: Mapping[str, object] | None = None) -> Settings:
        """The defaults, replaced by ``overrides`` where given.

        >>> print(*Settings.of({"hive.mapjoin.filesize": 1}).warnings)
        unknown setting hive.mapjoin.filesize, did you mean hive.mapjoin.smalltable.filesize?
        """
        values = dict(DEFAULTS)
        warnings = []
        for name, value in (overrides or {}).items():
            key, mistake = _key(name), _mistake(name, value)
            if mistake is None:
                values[key] = _text(value)
            elif key in DEFAULTS:
                warnings.append(f"{mistake}: using {DEFAULTS[key] or 'none'}")
            else:
                warnings.append(mistake)
        return cls(values, tuple(warnings))

    @classmethod
    def for_run(
        cls,
        hive_conf: Mapping[str, object] | None = None,
        script: Mapping[str, object] | None = None,
    ) -> Settings:
        """The settings of a run: ``hive.optimize.correlation`` is ``auto`` unless it is set.

        ``script`` has the SET lines of the statement, which override ``hive_conf``. An unknown
        name in a SET line is left to Spark; an unknown name in ``hive_conf`` is a mistake. Raises
        ``ValueError`` with a sentence for every mistake.

        >>> Settings.for_run().values[CORRELATION], Settings.of().values[CORRELATION]
        ('auto', 'false')
        >>> Settings.for_run({}, {"hive.exec.parallel": "true", "hive.map.aggr": "maybe"})
        Traceback (most recent call last):
        ValueError: setting hive.map.aggr must be true or false, not 'maybe'
        """
        known = {name: value for name, value in (script or {}).items() if _key(name) in DEFAULTS}
        given = {_key(name): value for name, value in {**(hive_conf or {}), **known}.items()}
        mistakes = [*_mistakes(hive_conf or {}), *_mistakes(known)]
        if mistakes:
            raise ValueError("; ".join(mistakes))
        return cls.of({CORRELATION: "auto", **given})

    def is_on(self, name: str) -> bool:
        """Whether a true/false setting is true."""
        return self.values[name] == "true"

    def number(self, name: str) -> int:
        """The value of a setting that is a whole number."""
        return int(self.values[name])

    def restricts(self, format_: str) -> bool:
        """Whether keys may become conditions on tables of a format with its own list of files.

        >>> asked = Settings.of({UNTESTED: "Delta"})
        >>> [asked.restricts(each) for each in ("iceberg", "delta", "hudi")]
        [True, True, False]
        """
        return format_ not in UNTESTED_FORMATS or format_ in _items(self.values[UNTESTED])

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
    if key not in DEFAULTS:
        near = difflib.get_close_matches(key, DEFAULTS, n=1, cutoff=0.0)[0]
        return f"unknown setting {name}, did you mean {near}?"
    if not _valid(key, _text(value)):
        return f"setting {name} must be {_kind(key)}, not {_text(value)!r}"
    return None


def _key(name: str) -> str:
    return name.strip().lower()


def _text(value: object) -> str:
    return str(value).strip().lower()


def _items(value: str) -> list[str]:
    return [item for part in value.split(",") if (item := part.strip())]


def _kind(key: str) -> str:
    if key in _LISTS:
        return f"{' or '.join(_LISTS[key])}, or both separated by a comma"
    if key in _WORDS:
        return " or ".join(word for word in _WORDS[key] if word)
    return "true or false" if DEFAULTS[key] in ("true", "false") else "a whole number"


def _valid(key: str, value: str) -> bool:
    default = DEFAULTS[key]
    if key in _LISTS:
        return all(item in _LISTS[key] for item in _items(value))
    if key in _WORDS:
        return value in _WORDS[key]
    if default in ("true", "false"):
        return value in ("true", "false")
    return default.startswith("org.") or value.removeprefix("-").isdecimal()
