"""One check of what a sensor waits for, for sensors and triggers alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents import descriptor as descriptors
from airflow_hive_opt.documents.log_text import plain
from airflow_hive_opt.documents.report import descriptor_summary
from airflow_hive_opt.documents.storage import DescriptorError, NothingThereError
from airflow_hive_opt.metastores.required import Required, Tuples, missing, name_of
from airflow_hive_opt.provider.airflow_compat import AirflowFailException, ObjectStoragePath
from airflow_hive_opt.statement.catalog import Column, Table
from airflow_hive_opt.statement.lake_formats import ICEBERG

if TYPE_CHECKING:
    from airflow_hive_opt.metastores.lakes import LakeClient
    from airflow_hive_opt.metastores.metastore import Metastore
    from airflow_hive_opt.metastores.partitions import Partition

_SHOWN = 10


@dataclass(frozen=True)
class PollResult:
    """The result of a check; ``message`` says what is missing, or what was found."""

    found: bool
    message: str
    summary: dict[str, Any] = field(default_factory=dict)


def poll_descriptor(uri: str, query_digest: str | None) -> PollResult:
    """Whether a complete descriptor is at ``uri``; with ``query_digest``, of this statement."""
    try:
        found = descriptors.load(ObjectStoragePath(uri))
    except NothingThereError:
        return PollResult(False, f"there is no descriptor at {uri} yet")
    except DescriptorError as error:
        return PollResult(False, str(error))
    except (ValueError, ImportError) as error:
        return PollResult(False, f"{uri} can't be read: {error}")
    if query_digest not in (None, found.query_digest):
        return PollResult(False, f"the descriptor at {uri} belongs to another statement")
    summary = descriptor_summary(found, uri)
    return PollResult(True, f"a complete descriptor is at {uri}, created {found.created}", summary)


def statement_digest(sql: str, parameters: Mapping[str, Any] | None) -> str:
    """The digest of a statement that may begin with ``SET`` lines."""
    from airflow_hive_opt.statement.script import split_settings

    return descriptors.query_digest(split_settings(sql)[1], parameters)


def check_connections(
    required: Sequence[Required], metastore_conn_id: str | None, catalog_conn_id: str | None
) -> None:
    """Raises ``AirflowFailException`` if a connection for one of the tables is not given."""
    lake = sorted({entry.table for entry in required if entry.provider == ICEBERG})
    if lake and catalog_conn_id is None:
        raise AirflowFailException(
            f"the keys require partitions of the Iceberg table {lake[0]}: set catalog_conn_id to "
            "the connection of its catalog"
        )
    if len(catalogs := sorted({name.split(".")[0] for name in lake})) > 1:
        raise AirflowFailException(
            f"the keys require partitions of tables in the catalogs {', '.join(catalogs)}, but "
            "catalog_conn_id is the connection of one catalog"
        )
    others = [entry.table for entry in required if not entry.provider]
    if others and metastore_conn_id is None:
        raise AirflowFailException(
            f"the keys require partitions of {others[0]}: set metastore_conn_id to the connection "
            "of its metastore"
        )


def poll_partitions(
    metastore: Metastore | None,
    required: Sequence[Required],
    lakes: Mapping[str, LakeClient] | None = None,
) -> PollResult:
    """Whether every required partition exists.

    Makes one metastore call for each table. AWS Glue gets one for each thousand partitions, or for
    each 2,048 bytes of keys. ``lakes`` has the client of each table format, and ``metastore``
    answers for all other tables; each may be ``None`` if no table needs it. Raises
    ``MetastoreError`` and ``CatalogError``.
    """
    lacking: list[str] = []
    notes: list[str] = []
    wanted = 0
    for entry in required:
        wanted += len(entry.tuples)
        if entry.provider:
            assert lakes is not None, "lake_clients"
            absent = lakes[entry.provider].absent(entry)
            tuples = absent.tuples
            notes += [plain(absent.note)] if absent.note and absent.note not in notes else []
        else:
            assert metastore is not None, "check_connections"
            tuples = _missing_of_metastore(metastore, entry)
        lacking += [plain(f"{entry.table}/{name_of(entry, row)}") for row in tuples]
    if not lacking:
        return PollResult(True, f"all {wanted:,} partitions are there", {"required": wanted})
    listed = ", ".join(lacking[:_SHOWN]) + (", ..." if len(lacking) > _SHOWN else "")
    listed += "".join(f"; {note}" for note in notes)
    return PollResult(
        False,
        f"{len(lacking):,} of {wanted:,} partitions are missing: {listed}",
        {"required": wanted, "missing": len(lacking), "first_missing": lacking[:_SHOWN]},
    )


def _missing_of_metastore(metastore: Metastore, entry: Required) -> Tuples:
    from airflow_hive_opt.metastores.metastore import MetastoreError

    try:
        present = _present(metastore, entry)
    except MetastoreError:  # servers have no distinct error here for a missing table
        if metastore.table(entry.table) is not None:
            raise
        present = []
    return missing(entry, present)


def _present(metastore: Metastore, entry: Required) -> list[Partition]:
    """The required partitions that exist, and perhaps others."""
    columns = map(Column, entry.all_columns, entry.types)
    table = Table(entry.table, (), tuple(columns))
    if metastore.names_are_cheap:
        return metastore.partition_names(table)
    at = [entry.all_columns.index(name) for name in entry.columns]
    return metastore.partitions_by_keys(table, [(at, frozenset(entry.tuples))], 0)
