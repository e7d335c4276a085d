"""The tables and settings for which a partition list is valid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Optional

VIEW = "view "


class OtherSession(Exception):
    """A partition list was made in a session that interprets the statement differently."""


@dataclass(frozen=True)
class Binding:
    """How one session interprets a statement; part of the descriptor.

    ``catalog`` and ``database`` are the current ones. ``metastore`` is the location of the
    metastore's default database, since one metastore may have several addresses. ``tables`` has
    the resolved name of each table that the statement reads, with its location; a view has
    :data:`VIEW` and the SHA-256 of its text. A table that is not found is left out. ``settings``
    are the Spark settings that may change values or names.
    """

    catalog: str
    database: str
    metastore: Optional[str]
    tables: Mapping[str, Optional[str]] = field(default_factory=dict)
    settings: Mapping[str, Optional[str]] = field(default_factory=dict)


def check_same(local_task: Binding, map_join: Binding) -> None:
    """Raises :class:`OtherSession` with all differences, unless both bindings are equivalent."""
    found = list(differences(local_task, map_join))
    if found:
        raise OtherSession(
            "the partition list is refused, because its local task ran in another session: "
            f"{'; '.join(found)}. Give both tasks the same conf, connection and metastore, and "
            "run the local task again"
        )


def differences(local_task: Binding, map_join: Binding) -> Iterator[str]:
    """One clause of text for every difference.

    >>> utc = Binding("spark_catalog", "dw", None, settings={"spark.sql.session.timeZone": "UTC"})
    >>> zone = {"spark.sql.session.timeZone": "Asia/Tokyo"}
    >>> tokyo = Binding("spark_catalog", "dw", None, settings=zone)
    >>> list(differences(utc, tokyo))
    ['spark.sql.session.timeZone is UTC there and Asia/Tokyo here']
    """
    if local_task.catalog != map_join.catalog:
        yield f"the current catalog is {local_task.catalog} there and {map_join.catalog} here"
    if local_task.database != map_join.database:
        yield f"the current database is {local_task.database} there and {map_join.database} here"
    if None not in (local_task.metastore, map_join.metastore) and (
        _same_form(local_task.metastore) != _same_form(map_join.metastore)
    ):
        yield (
            "the metastore is another: its default database lies in "
            f"{local_task.metastore} there and in {map_join.metastore} here"
        )
    for name in sorted({*local_task.tables, *map_join.tables}):
        if name not in map_join.tables:  # Spark reports a missing table itself
            continue
        if name not in local_task.tables:
            yield f"{name} is not read there"
            continue
        there, here = local_task.tables[name], map_join.tables[name]
        if _same_form(there) == _same_form(here):
            continue
        if _is_view(there) and _is_view(here):
            yield f"{name} is a view, and its text there is not the one here"
        else:
            yield f"{name} {_lies(there)} there and {_lies(here)} here"
    for name in sorted({*local_task.settings, *map_join.settings}):
        there, here = local_task.settings.get(name), map_join.settings.get(name)
        if _same_form(there) != _same_form(here):
            yield f"{name} is {_shown(there)} there and {_shown(here)} here"


_UTC = frozenset({"utc", "etc/utc", "gmt", "etc/gmt", "z", "zulu", "etc/zulu", "utc+0", "+00:00"})


def _same_form(text: str | None) -> str | None:
    """A normal form of locations (``file:///w`` is ``file:/w``), of UTC and of booleans."""
    if text is None:
        return None
    if text.lower() in _UTC:
        return "utc"
    if text.startswith("file:"):
        return "file:/" + text.removeprefix("file:").strip("/")
    return text.rstrip("/") if "/" in text else text.lower()


def _lies(location: str | None) -> str:
    return "is a view" if _is_view(location) else f"lies in {location}"


def _is_view(location: str | None) -> bool:
    return location is None or location.startswith(VIEW)


def _shown(value: str | None) -> str:
    return "not set" if value is None else value
