"""Which client the local task uses if a connection fails in an unexpected way."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from airflow_hive_opt.metastores.thrift.security import PLAIN
from airflow_hive_opt.metastores.work import Work
from airflow_hive_opt.spark.catalog import remote_metastore
from airflow_hive_opt.statement.catalog import Column, Table

TABLE = Table("default.f", (Column("v", "int"),), (Column("p", "int"),))


def test_an_unexpected_connection_error_is_raised_at_the_first_call(monkeypatch):
    def fails(uris, security):
        raise RuntimeError(f"no way to {uris}")

    place = "thrift://nowhere:1", PLAIN
    monkeypatch.setattr(remote_metastore, "remote_of", lambda session: place)
    monkeypatch.setattr(remote_metastore, "_connected", fails)
    catalog = SimpleNamespace(work=lambda: Work(metastore_calls=1))
    with remote_metastore.PartitionsOf(None, catalog) as metastore:
        with pytest.raises(RuntimeError, match="no way to thrift://nowhere:1"):
            metastore.partition_count(TABLE)
        assert metastore.work() == Work(metastore_calls=1)
