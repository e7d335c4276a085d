"""The tables and settings for which a partition list is valid."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Optional

VIEW = "view "
TEMPORARY_VIEW = "temporary view "


SPARK, WORKER = "spark", "worker"
CASE_SENSITIVE = "spark.sql.caseSensitive"
TIME_ZONE = "spark.sql.session.timeZone"
# Settings that change the meaning of names, literals, functions or files: explicit values count.
_CHANGES_VALUES = re.compile(
    r"spark\.sql\.("
    r"(ansi|legacy|parser|decimalOperations|function|collation|jsonGenerator|json|xml|variant|icu"
    r"|lateralColumnAlias|path|functionResolution)\..+|defaultPath"
    r"|(csv\.parser|avro\.datetimeRebase|chunkBase64String).+|columnNameOfCorruptRecord"
    r"|catalog\.\w+(\.(type|warehouse|catalog-impl))?|extensions|variable\.substitute"
    r"|(hive\.(convertMetastore|manageFilesourcePartitions)|files\.ignore).*"
    r"|parquet\.(binaryAsString|int96|datetimeRebase|inferTimestampNTZ|fieldId\.read).*"
    r"|(charAsVarchar|readSideCharPadding|preserveCharVarcharTypeInfo)"
    r"|(groupBy(Aliases|Ordinal)|orderByOrdinal|mapKeyDedupPolicy)"
    r"|sources\.partitionColumnTypeInference\.enabled"
    r")"
)
_CATALOG, _OF_ICEBERG = "spark.sql.catalog.default", "org.apache.iceberg.spark.Spark"
# Iceberg sets these by itself in a session that has called a procedure or read a path.
_SET_BY_ICEBERG = {
    f"{_CATALOG}_iceberg": f"{_OF_ICEBERG}Catalog",
    f"{_CATALOG}_iceberg.type": "hive",
    f"{_CATALOG}_cache_iceberg": f"{_OF_ICEBERG}CachedTableCatalog",
    f"{_CATALOG}_rewrite_catalog": f"{_OF_ICEBERG}RewriteTableCatalog",
}
# Settings that change nothing that a worker evaluates. It reads no table whose columns are found by
# their numbers, and Delta's library sets this on its own.
_OF_NO_WORKER = re.compile(
    r"spark\.sql\.(session\.timeZone|ansi\.enabled|legacy\.timeParserPolicy|timestampType"
    r"|parquet\.fieldId\.read\.enabled"
    r"|extensions|catalog\.(?!spark_catalog\b).+)"
)


def that_change_values(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that may change values or names, of all settings of a session.

    >>> name = "spark.sql.catalog.default_iceberg"
    >>> that_change_values({name: "org.apache.iceberg.spark.SparkCatalog", f"{name}.type": "hive"})
    {}
    >>> that_change_values({f"{name}.type": "hadoop", "spark.sql.shuffle.partitions": "7"})
    {'spark.sql.catalog.default_iceberg.type': 'hadoop'}
    """
    return {
        name: value
        for name, value in settings.items()
        if _CHANGES_VALUES.fullmatch(name) and value != _SET_BY_ICEBERG.get(name)
    }


class OtherSession(Exception):
    """A partition list was made in a session that interprets the statement differently."""


@dataclass(frozen=True)
class Binding:
    """How one session interprets a statement; part of the descriptor.

    ``catalog`` and ``database`` are the current ones. ``metastore`` is the location of the
    metastore's default database, since one metastore may have several addresses. ``tables`` has the
    resolved name of each table that the statement reads, with its location; a view has :data:`VIEW`
    or :data:`TEMPORARY_VIEW` and the SHA-256 of its definition. A table that is not found is left
    out. ``settings`` are the Spark settings that may change values or names. ``functions`` are
    those that the statement may call, except Spark's own, each with the SHA-256 of its definition,
    or ``None`` for a function of Python or Java. ``variables`` has the SHA-256 of the value of each
    session variable. Names in views and functions count too.

    ``reader`` is what has read the keys. :data:`WORKER` has evaluated Spark's own functions in
    ``calls``, but nothing else that another session may read differently.
    """

    catalog: str
    database: str
    metastore: Optional[str]
    tables: Mapping[str, Optional[str]] = field(default_factory=dict)
    settings: Mapping[str, Optional[str]] = field(default_factory=dict)
    functions: Mapping[str, Optional[str]] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    reader: str = SPARK
    calls: tuple[str, ...] = ()

    def for_worker(self, calls: tuple[str, ...]) -> Binding:
        """The part of a session's binding on which the keys of a worker depend.

        ``calls`` are the functions that the worker has evaluated.

        >>> session = Binding("spark_catalog", "default", None, functions={"year": "a", "f": "b"})
        >>> session.for_worker(("year",)).functions
        {'year': 'a'}
        """
        settings = {
            name: value
            for name, value in self.settings.items()
            if not _OF_NO_WORKER.fullmatch(name)
        }
        functions = {name: digest for name, digest in self.functions.items() if name in calls}
        return replace(
            self,
            settings=settings,
            functions=functions,
            variables={},
            reader=WORKER,
            calls=calls,
        )


def check_same(local_task: Binding, map_join: Binding) -> None:
    """Raises :class:`OtherSession` with all differences, unless both bindings are equivalent."""
    found = list(differences(local_task, map_join))
    if found:
        raise OtherSession(
            "the partition list is refused, because its local task ran in another session: "
            f"{'; '.join(found)}. Give both tasks the same conf, connection and metastore, and "
            "run the local task again"
        )


def differences(
    local_task: Binding,
    map_join: Binding,
    there: str = "the local task",
    here: str = "the map join",
) -> Iterator[str]:
    """One clause of text for every difference.

    ``there`` and ``here`` are the names of the two sessions in the clauses.

    >>> utc = Binding("spark_catalog", "dw", None, settings={"spark.sql.session.timeZone": "UTC"})
    >>> zone = {"spark.sql.session.timeZone": "Asia/Tokyo"}
    >>> tokyo = Binding("spark_catalog", "dw", None, settings=zone)
    >>> list(differences(utc, tokyo))
    ['spark.sql.session.timeZone was UTC in the local task and is Asia/Tokyo in the map join']
    """
    both = there, here
    if local_task.catalog != map_join.catalog:
        yield _changed("the current catalog", local_task.catalog, map_join.catalog, both)
    if local_task.database != map_join.database:
        yield _changed("the current database", local_task.database, map_join.database, both)
    if None not in (local_task.metastore, map_join.metastore) and (
        _same_form(local_task.metastore) != _same_form(map_join.metastore)
    ):
        yield (
            "the metastore is another: the location of its default database was "
            f"{local_task.metastore} in {there} and is {map_join.metastore} in {here}"
        )
    for name in sorted({*local_task.tables, *map_join.tables}):
        yield from _difference(name, local_task.tables, map_join.tables, both)
    for kind, before, now in (
        ("function", local_task.functions, map_join.functions),
        ("session variable", local_task.variables, map_join.variables),
    ):
        for name in sorted({*before, *now}):
            if name not in now:
                yield f"the {kind} {name} is defined in {there} and not in {here}"
            elif name not in before:
                yield f"the {kind} {name} is defined in {here} and not in {there}"
            elif before[name] != now[name]:
                yield f"the {kind} {name} is defined differently in {there} and {here}"
    for name in sorted({*local_task.settings, *map_join.settings}):
        setting, other = local_task.settings.get(name), map_join.settings.get(name)
        if _same_form(setting) != _same_form(other):
            yield _changed(name, _shown(setting), _shown(other), both)


def _changed(what: str, before: str, now: str, both: tuple[str, str]) -> str:
    there, here = both
    return f"{what} was {before} in {there} and is {now} in {here}"


def _difference(
    name: str,
    before: Mapping[str, str | None],
    now: Mapping[str, str | None],
    both: tuple[str, str],
) -> Iterator[str]:
    """How a table or view differs; nothing if it is only missing now: Spark reports that."""
    there, here = both
    if name not in now:
        if _kind(before[name]) == _TEMPORARY:
            yield f"{name} is a temporary view in {there} and not in {here}"
    elif name not in before:
        what = "a temporary view" if _kind(now[name]) == _TEMPORARY else "read"
        yield f"{name} is {what} in {here} and not in {there}"
    elif _same_form(before[name]) != _same_form(now[name]):
        if _kind(before[name]) == _kind(now[name]) != _TABLE:
            yield f"the definition of {name}, {_kind(now[name])}, has changed since {there}"
        else:
            yield (
                f"{name} {_described(before[name])} in {there} and {_described(now[name])} in "
                f"{here}"
            )


UTC = frozenset({"utc", "etc/utc", "gmt", "etc/gmt", "z", "zulu", "etc/zulu", "utc+0", "+00:00"})
"""Names of UTC in lower case."""


def _same_form(text: str | None) -> str | None:
    """A normal form of locations (``file:///w`` is ``file:/w``), of UTC and of booleans."""
    if text is None:
        return None
    if text.lower() in UTC:
        return "utc"
    if text.startswith("file:"):
        return "file:/" + text.removeprefix("file:").strip("/")
    return text.rstrip("/") if "/" in text else text.lower()


_TABLE, _VIEW, _TEMPORARY = "a table", "a view", "a temporary view"


def _kind(location: str | None) -> str:
    if location is not None and location.startswith(TEMPORARY_VIEW):
        return _TEMPORARY
    return _VIEW if location is None or location.startswith(VIEW) else _TABLE


def _described(location: str | None) -> str:
    kind = _kind(location)
    return f"lies in {location}" if kind == _TABLE else f"is {kind}"


def _shown(value: str | None) -> str:
    return "not set" if value is None else value
