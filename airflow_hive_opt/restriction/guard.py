"""Statements that fail if another session than the local task's would read other rows.

They are for a runner that does not know of the local task and can only run SQL. They precede the
restricted statement, because a scan of no partitions never evaluates a condition in it. Each check
has its own message. What SQL can't tell is not checked: locations of tables, other settings, views,
functions, and partitions that are new.
"""

from __future__ import annotations

from collections.abc import Iterator

from airflow_hive_opt.documents.binding import CASE_SENSITIVE, TIME_ZONE, UTC, Binding
from airflow_hive_opt.documents.descriptor import Descriptor, SourceKeys
from airflow_hive_opt.documents.key_tuples import KeyTuples
from airflow_hive_opt.documents.required_keys import FoundKeys, ScanKeys
from airflow_hive_opt.pruning.rules.key_sources import SKELETON_VIEW
from airflow_hive_opt.restriction.literals import literal, tuples_condition
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.scan_ref import ScanRef
from airflow_hive_opt.statement.types import INTEGER_BITS, TIMESTAMP
from airflow_hive_opt.statement.zip_strict import zip_strict

# In effect, whether it is set or a default: each expression is evaluated as the setting says.
_SHOWN_BY = {
    "spark.sql.ansi.enabled": (
        "typeof(coalesce(1, '1'))",
        {"true": "bigint", "false": "string"},
    ),
    CASE_SENSITIVE: (
        # the variable of the function hides the column only if both are the same name
        "(SELECT transform(array('false'), x -> X)[0] FROM (SELECT 'true' AS X) AS __case)",
        {"true": "true", "false": "false"},
    ),
    "spark.sql.timestampType": (
        "typeof(TIMESTAMP'2000-01-01 00:00:00')",
        {"timestamp_ltz": "timestamp", "timestamp_ntz": "timestamp_ntz"},
    ),
}
_KEYS = "__keys"


def guard(descriptor: Descriptor, keys: FoundKeys | None) -> tuple[str, ...]:
    """The statements to run before the restricted one, in this order.

    The first checks the session, since the second may not find its tables in another session. The
    second checks the small tables: with ``keys``, they must have no key that is not among them;
    without, no more distinct keys than the local task read. Keys that restrict a table with its own
    list of files are checked only with ``keys``. There are no statements if nothing is restricted.
    """
    if not (descriptor.targets or descriptor.row_filters or descriptor.statement):
        return ()
    both = (_of_session(descriptor.binding), _of_keys(descriptor, keys))
    return tuple(f"SELECT {', '.join(checks)}" for each in both if (checks := list(each)))


def _of_session(binding: Binding | None) -> Iterator[str]:
    if binding is None:
        return
    yield _check(
        f"current_catalog() = {literal(binding.catalog)}",
        f"the current catalog is not {binding.catalog}, as in the local task: USE that catalog "
        "before, or write it before the names of the tables",
    )
    yield _check(
        f"current_database() = {literal(binding.database)}",
        f"the current database is not {binding.database}, as in the local task: set it in the "
        "connection or the operator, or write it before the names of the tables",
    )
    if zone := binding.settings.get(TIME_ZONE):
        same = sorted(UTC) if zone.lower() in UTC else [zone.lower()]
        yield _check(
            f"lower(current_timezone()) IN ({', '.join(map(literal, same))})",
            f"{TIME_ZONE} is not {zone}, as in the local task: {_SAME_SETTING}",
        )
    for name, (expression, values) in _SHOWN_BY.items():
        value = binding.settings.get(name)
        if value is not None and value.lower() in values:
            yield _check(
                f"{expression} = {literal(values[value.lower()])}",
                f"{name} is not {value}, as in the local task: {_SAME_SETTING}",
            )


_SAME_SETTING = "set it there, or in the conf of the local task, to the same value"


def _of_keys(descriptor: Descriptor, keys: FoundKeys | None) -> Iterator[str]:
    known = {
        query: (scan, listed)
        for query, scan, listed in (keys.by_query() if keys is not None else ())
        if TIMESTAMP not in scan.types_of(listed)  # microseconds, which SQL does not compare
    }
    for scan, source, is_counted in dict.fromkeys(_sources(descriptor)):
        if SKELETON_VIEW in source.sql:  # no other session has a view of partition names
            continue
        if source.sql in known:
            condition = _has_only(source.sql, *known[source.sql])
        elif is_counted:
            condition = f"(SELECT count(*) FROM ({source.sql}) AS {quote(_KEYS)}) <= {source.keys}"
        else:
            continue
        yield _check(
            condition,
            f"{source.name} has keys now that it did not have when the local task read them, and "
            f"{scan.name} would be read without them: clear the local task",
        )


def _sources(descriptor: Descriptor) -> Iterator[tuple[ScanRef, SourceKeys, bool]]:
    """The scans and their sources, and whether a source's number of keys is that of its query.

    It is not for a table with its own list of files, whose columns have filters of their own.
    """
    lakes = {found.scan for found in descriptor.planned_files}
    for target in descriptor.targets:
        yield from ((target.scan, source, True) for source in target.sources)
    for found in descriptor.row_filters:
        yield found.scan, found.source, found.scan not in lakes


def _has_only(query: str, scan: ScanKeys, keys: KeyTuples) -> str:
    """The condition that the query returns no other keys than these.

    Keys out of the range of their column's type do not count: they match nothing.
    """
    own = scan.types_of(keys)
    names = [f"c{number}" for number, _ in enumerate(own)]
    other = [f"NOT ({tuples_condition(_KEYS, names, keys.tuples(own, bool(scan.provider)))})"]
    for name, type_ in zip_strict(names, own):
        if bits := INTEGER_BITS.get(type_):
            other.append(f"{quote(name)} BETWEEN {-(1 << bits - 1)} AND {(1 << bits - 1) - 1}")
    rows = f"({query}) AS {quote(_KEYS)} ({', '.join(map(quote, names))})"
    return f"(SELECT count(*) FROM {rows} WHERE {' AND '.join(other)}) = 0"


def _check(condition: str, message: str) -> str:
    return f"assert_true({condition}, {literal(f'airflow_hive_opt: {message}')})"
