"""Which settings a partition list depends on."""

from __future__ import annotations

import pytest

from airflow_hive_opt.documents.binding import CHANGES_VALUES


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("spark.sql.catalog.lake", True),
        ("spark.sql.catalog.lake.type", True),
        ("spark.sql.catalog.spark_catalog", True),
        ("spark.sql.catalog.default", True),
        ("spark.sql.catalog.default_lake", True),
        ("spark.sql.catalog.default_iceberg", False),
        ("spark.sql.catalog.default_iceberg.type", False),
        ("spark.sql.catalog.default_rewrite_catalog", False),
        ("spark.sql.shuffle.partitions", False),
    ],
)
def test_catalogs_that_iceberg_sets_up_by_itself_do_not_count(name, counts):
    assert bool(CHANGES_VALUES.fullmatch(name)) == counts
