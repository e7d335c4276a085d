"""Adds a run's figures and partition keys to the asset events of its outlets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.descriptor import Descriptor, DescriptorError, load
from airflow_hive_opt.documents.partitions_read import partitions_read
from airflow_hive_opt.provider.airflow_compat import TAKES_PARTITIONS, Asset, ObjectStoragePath

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context

_FIGURES = ("kept", "total", "reason", "uri", "digest")
_ESCAPED = str.maketrans({"%": "%25", "|": "%7C"})

MOST_KEYS = 1000
"""Airflow stores one event for each key."""

MOST_CHARACTERS = 250
"""The maximum length of a key in Airflow's database."""


class NoPartitionKeysError(Exception):
    """The run's partitions can't become keys; the message says why."""


def check_partition_keys_of(table: str | None) -> None:
    """Raises ``TypeError`` if keys are requested and this Airflow does not support them."""
    if table is not None and not TAKES_PARTITIONS:
        raise TypeError("partition_keys_of needs Airflow 3.3")


def partition_keys(summary: Mapping[str, Any], table: str | None, log: Any) -> list[str]:
    """The keys from the stored descriptor; an error is logged, since the statement has run."""
    if table is None:
        return []
    try:
        return partition_keys_in(load(ObjectStoragePath(summary["uri"])), table)
    except (DescriptorError, ImportError, ValueError, NoPartitionKeysError) as error:
        log.warning("the asset events have no partition keys: %s", error)
        return []


def extend(
    context: Context, outlets: Iterable[object], summary: Mapping[str, Any], keys: list[str]
) -> None:
    """Adds the summary's figures and the keys to the events of all assets in ``outlets``."""
    for asset in outlets:
        if isinstance(asset, Asset):
            event = context["outlet_events"][asset]
            event.extra.update({name: summary[name] for name in _FIGURES})
            if keys:
                event.add_partitions(keys)


def partition_keys_in(descriptor: Descriptor, table: str) -> list[str]:
    """One key for each partition of ``table`` that the run reads: its values, joined by ``|``.

    Airflow's partition mappers can read the keys: ``StartOfDayMapper`` reads ``2026-01-31``, and
    ``ProductMapper`` reads ``n|2026-01``. In a value, ``|`` becomes ``%7C`` and ``%`` becomes
    ``%25``, so that two partitions never have the same key. ``table`` is ``database.table`` or the
    table's name without its database. Raises :class:`NoPartitionKeysError`.
    """
    wanted = table.lower()
    found = [
        read
        for name, read in partitions_read(descriptor).items()
        if name == wanted or name.endswith(f".{wanted}")
    ]
    if len(found) != 1:
        raise NoPartitionKeysError(
            f"the run pruned several tables named {table}"
            if found
            else f"the run pruned no scan of {table}"
        )
    keys = ["|".join(value.translate(_ESCAPED) for value in values) for values in found[0].values]
    if len(keys) > MOST_KEYS:
        raise NoPartitionKeysError(
            f"{len(keys):,} partitions of {table} would create as many asset events, but the limit "
            f"is {MOST_KEYS:,}"
        )
    if odd := [key for key in keys if not key.strip() or len(key) > MOST_CHARACTERS]:
        raise NoPartitionKeysError(
            f"Airflow requires partition keys of 1 to {MOST_CHARACTERS} characters, but {table} "
            f"has a partition with the key {odd[0][:80]!r}"
        )
    return keys
