"""Which Iceberg tables of a Spark Connect server are described, by what SQL tells of them."""

from __future__ import annotations

import pytest
from packaging.version import Version

from tests.versions.installed import SPARK

if Version("4.0") > SPARK:
    pytest.skip("Spark Connect needs PySpark 4.0", allow_module_level=True)

from airflow_hive_opt.spark.catalog.lakes.connect_iceberg import (
    ConnectIceberg,
    check_possible_defaults,
)
from airflow_hive_opt.spark.catalog.lakes.connect_table import ConnectTable
from airflow_hive_opt.spark.catalog.lakes.place import Place
from airflow_hive_opt.statement.catalog import Column, Table
from airflow_hive_opt.statement.errors import PlanError

# As Iceberg's tables of metadata have it too.
EMPTY = {"provider": "iceberg", "current-snapshot-id": "none"}


def described(name, **properties):
    place = Place.of(name)
    rows = (("# Partitioning", ""), ("Part 0", "days(at)"))
    loaded = ConnectTable(None, place, rows)
    loaded.__dict__["properties"] = {**EMPTY, **properties}
    columns = (Column("id", "bigint"), Column("at", "timestamp"))
    return ConnectIceberg().described(None, place, Table(name, columns), loaded)


@pytest.mark.parametrize("name", ["history", "changes", "files", "orders"])
def test_a_table_may_have_the_name_of_one_of_metadata(name):
    found = described(f"lake.shop.{name}", **{"format-version": "2"})
    assert (found.provider, found.partitioned_by) == ("iceberg", ("at",))


def test_a_table_of_metadata_is_not_described():
    found = described("lake.shop.orders.history")
    assert (found.provider, found.partitioned_by) == ("", ())


@pytest.mark.parametrize(
    ("version", "who"),
    [("1.11.0", "Iceberg 1.11.0"), (None, "the server's Iceberg, of an")],
)
def test_an_iceberg_that_may_lose_rows_is_named(version, who):
    with pytest.raises(PlanError, match=f"t may have columns with default values.* {who}"):
        check_possible_defaults(version, "lake.shop.t")
