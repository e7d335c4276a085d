"""A bare Thrift client for tests: what makes tables and partitions in a metastore."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from pymetastore.hive_metastore import ThriftHiveMetastore
from pymetastore.hive_metastore.ttypes import (
    AddPartitionsRequest,
    Database,
    FieldSchema,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from tests.services.metastore import MetastoreService

_PARQUET = "org.apache.hadoop.hive.ql.io.parquet"


@contextmanager
def thrift_client(service: MetastoreService) -> Iterator[ThriftHiveMetastore.Client]:
    """A client until the block ends."""
    transport = TBufferedTransport(TSocket(service.host, service.port))
    transport.open()
    try:
        yield ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(transport))
    finally:
        transport.close()


def create_database(client: ThriftHiveMetastore.Client, name: str, folder: str) -> None:
    """An empty Hive database."""
    client.create_database(Database(name=name, locationUri=folder, parameters={}))


def create_table(
    client: ThriftHiveMetastore.Client,
    name: str,
    columns: Sequence[tuple[str, str]],
    partition_columns: Sequence[tuple[str, str]],
    location: str,
    parameters: dict[str, str] | None = None,
) -> None:
    """An external Parquet table, ``db.table``."""
    database, _, table = name.partition(".")
    client.create_table(
        Table(
            dbName=database,
            tableName=table,
            owner="tests",
            tableType="EXTERNAL_TABLE",
            parameters={"EXTERNAL": "TRUE", **(parameters or {})},
            partitionKeys=[FieldSchema(*column, "") for column in partition_columns],
            sd=storage(columns, location),
        )
    )


def add_partitions(
    client: ThriftHiveMetastore.Client,
    name: str,
    columns: Sequence[tuple[str, str]],
    partitions: Iterable[tuple[Sequence[str], str, dict[str, str]]],
) -> None:
    """Partitions: values, location and parameters of each; in one call."""
    database, _, table = name.partition(".")
    client.add_partitions_req(
        AddPartitionsRequest(
            dbName=database,
            tblName=table,
            ifNotExists=False,
            needResult=False,
            parts=[
                Partition(
                    values=list(values),
                    dbName=database,
                    tableName=table,
                    sd=storage(columns, location),
                    parameters=parameters,
                )
                for values, location, parameters in partitions
            ],
        )
    )


def storage(columns: Sequence[tuple[str, str]], location: str) -> StorageDescriptor:
    """Parquet files at a location."""
    return StorageDescriptor(
        cols=[FieldSchema(*column, "") for column in columns],
        location=location,
        inputFormat=f"{_PARQUET}.MapredParquetInputFormat",
        outputFormat=f"{_PARQUET}.MapredParquetOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo(serializationLib=f"{_PARQUET}.serde.ParquetHiveSerDe", parameters={}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )
