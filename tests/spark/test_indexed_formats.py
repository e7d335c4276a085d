"""The formats whose tables can have key indexes."""

from __future__ import annotations

import pytest

from airflow_hive_opt.spark.catalog.lakes.formats import indexed_format
from airflow_hive_opt.statement.lake_formats import LAKE_FORMATS, is_indexable


@pytest.mark.parametrize("name", LAKE_FORMATS)
def test_the_planner_and_spark_know_the_same_formats(name):
    if is_indexable(name):
        assert indexed_format(name).name == name
    else:
        with pytest.raises(StopIteration):
            indexed_format(name)
