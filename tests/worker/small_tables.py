"""Small tables for tests: their catalog, and how Spark and PyArrow write them."""

from __future__ import annotations

from dataclasses import dataclass, field

from upath import UPath

from airflow_hive_opt.documents.job import KeyBounds
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.pruning.decisions import KeySource
from airflow_hive_opt.pruning.query import ColumnRef
from airflow_hive_opt.statement.catalog import Column, Table
from airflow_hive_opt.worker.key_query import collect
from airflow_hive_opt.worker.tables import Tables

BOUNDS = KeyBounds(100_000, 16 << 20)


@dataclass
class Known:
    """A catalog of tables that tests add."""

    tables: dict[str, Table] = field(default_factory=dict)
    storages: dict[str, Storage] = field(default_factory=dict)
    stored: dict[str, list[tuple[Partition, Storage]]] = field(default_factory=dict)
    named: dict[str, list[Partition]] = field(default_factory=dict)

    def add(self, name, columns, storage, partition_columns=(), partitions=(), by_serde=False):
        table = Table(
            name,
            tuple(Column(*each) for each in columns),
            tuple(Column(*each) for each in partition_columns),
            total_bytes=1,
            by_serde=by_serde,
        )
        self.tables[name] = table
        self.storages[name] = storage
        self.stored[name] = list(partitions)
        self.named[name] = [partition for partition, _ in partitions]
        return table

    def table(self, name):
        return self.tables.get(name)

    def storage(self, table):
        return self.storages[table.name]

    def stored_partitions(self, table):
        return self.stored[table.name]

    def partition_names(self, table):
        return self.named[table.name]


def key_source(sql, *columns, partition_columns=None, skeletons=(), layers=(), conditions=()):
    """The source of a query; ``columns`` are ``alias.name``."""
    refs = tuple(ColumnRef(*column.split(".")) for column in columns)
    own = tuple(c.name for c in refs) if partition_columns is None else partition_columns
    aliases = tuple(dict.fromkeys(ref.alias for ref in refs))
    return KeySource(aliases, "small", sql, refs, conditions, layers, True, own, tuple(skeletons))


def keys_of(known, sql, *columns, parameters=None, bounds=BOUNDS, skeletons=()):
    """The keys of a source, or the reason why they can't be used."""
    source = key_source(sql, *columns, skeletons=skeletons)
    return collect(source, Tables(known, UPath), bounds, parameters or {})
