"""Hive's transactional tables in a metastore, with the files that Hive would have written.

Spark can't write such a table, and there is no Hive here. A table has delta folders, and a folder
of deleted rows. A row's file has Hive's columns for transactions around the table's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
from pymetastore.hive_metastore.ttypes import (
    FieldSchema,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)

from tests.services.postgres import Postgres

_ORC = "org.apache.hadoop.hive.ql.io.orc"
_INSERT, _DELETE = 0, 2
ACID = {"transactional": "true"}
INSERT_ONLY = {"transactional": "true", "transactional_properties": "insert_only"}
COLUMNS = [("id", "int"), ("day", "string")]
_TYPES = {"int": pa.int32(), "string": pa.string()}


def create(client, name: str, folder: Path, keys: Sequence[tuple[str, str]] = ()) -> None:
    """A table of :data:`COLUMNS`, without those that are among the partition columns.

    :func:`mark` makes it transactional.
    """
    database, _, short = name.partition(".")
    client.create_table(
        Table(
            dbName=database,
            tableName=short,
            owner="tests",
            tableType="MANAGED_TABLE",
            parameters={},
            partitionKeys=[FieldSchema(*key, "") for key in keys],
            sd=_storage([each for each in COLUMNS if each not in keys], folder),
        )
    )


def mark(server: Postgres, name: str, parameters: Mapping[str, str]) -> None:
    """Writes what Hive has in a transactional table's entry.

    A metastore that is alone makes no such entry: it wants to see the classes of Hive's files.
    """
    database, _, short = name.partition(".")
    with server.connect("metastore") as connection:
        ((table,),) = connection.execute(
            'SELECT "TBL_ID" FROM "TBLS" JOIN "DBS" USING ("DB_ID") WHERE "NAME" = %s AND '
            '"TBL_NAME" = %s',
            [database, short],
        )
        of_table = 'WHERE "TBL_ID" = %s'
        connection.execute(f'UPDATE "TBLS" SET "TBL_TYPE" = \'MANAGED_TABLE\' {of_table}', [table])
        connection.execute(f'DELETE FROM "TABLE_PARAMS" {of_table}', [table])
        for each in parameters.items():
            connection.execute(
                'INSERT INTO "TABLE_PARAMS" ("TBL_ID", "PARAM_KEY", "PARAM_VALUE") '
                "VALUES (%s, %s, %s)",
                [table, *each],
            )


def add_partition(client, name: str, folder: Path, value: str) -> None:
    """A partition of a table that is partitioned by ``day``."""
    database, _, short = name.partition(".")
    place = _storage(COLUMNS[:1], folder)
    client.add_partition(Partition([value], database, short, sd=place, parameters={}))


def write_delta(folder: Path, transaction: int, rows: Sequence[Mapping[str, object]]) -> None:
    """The rows that a transaction has inserted into a table with all of Hive's transactions."""
    _write(_delta(folder, "delta", transaction), _events(_INSERT, transaction, rows))


def write_deletes(folder: Path, transaction: int, inserted: int, rows: Sequence[int]) -> None:
    """A transaction has deleted these rows of the transaction ``inserted``."""
    events = [
        {"operation": _DELETE, "originalTransaction": inserted, "bucket": 536870912}
        | {"rowId": row, "currentTransaction": transaction, "row": None}
        for row in rows
    ]
    _write(_delta(folder, "delete_delta", transaction), events)


def write_inserted(folder: Path, transaction: int, rows: Sequence[Mapping[str, object]]) -> None:
    """The rows that a transaction has inserted into a table that can only be added to."""
    schema = pa.schema([(name, _TYPES[type_]) for name, type_ in COLUMNS if name in rows[0]])
    file = _delta(folder, "delta", transaction)
    file.parent.mkdir(parents=True)
    orc.write_table(pa.Table.from_pylist(list(rows), schema), file)


def _events(operation: int, transaction: int, rows: Sequence[Mapping[str, object]]):
    common = {"operation": operation, "originalTransaction": transaction, "bucket": 536870912}
    return [
        {**common, "rowId": at, "currentTransaction": transaction, "row": dict(row)}
        for at, row in enumerate(rows)
    ]


def _write(file: Path, events: Sequence[Mapping[str, object]]) -> None:
    own = pa.struct([(name, _TYPES[type_]) for name, type_ in COLUMNS])
    schema = pa.schema(
        [
            ("operation", pa.int32()),
            ("originalTransaction", pa.int64()),
            ("bucket", pa.int32()),
            ("rowId", pa.int64()),
            ("currentTransaction", pa.int64()),
            ("row", own),
        ]
    )
    file.parent.mkdir(parents=True)
    orc.write_table(pa.Table.from_pylist(list(events), schema), file)


def _delta(folder: Path, kind: str, transaction: int) -> Path:
    return folder / f"{kind}_{transaction:07}_{transaction:07}_0000" / "bucket_00000"


def _storage(columns: Sequence[tuple[str, str]], folder: Path) -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema(*column, "") for column in columns],
        location=str(folder),
        inputFormat=f"{_ORC}.OrcInputFormat",
        outputFormat=f"{_ORC}.OrcOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo(serializationLib=f"{_ORC}.OrcSerde", parameters={}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )
