"""The catalog that is read from a ``TABLES.json`` file."""

import json

import pytest

from airflow_hive_opt.statement.catalog import CatalogFileError, Column, JsonCatalog


def test_a_catalog_file_describes_tables(tmp_path):
    path = tmp_path / "tables.json"
    table = {
        "name": "DW.Sales",
        "columns": [["Item", "INT"]],
        "partition_columns": [["ds", "string"]],
        "total_bytes": 10,
    }
    path.write_text(json.dumps({"tables": [table, {"name": "t", "columns": []}]}))
    catalog = JsonCatalog.read(path)
    assert catalog.table("dw.SALES").all_columns == (Column("item", "int"), Column("ds", "string"))
    assert catalog.table("T") is catalog.table("default.t")
    assert catalog.table("sales") is None


def test_a_catalog_file_may_have_buckets_and_distinct_counts():
    buckets = {"columns": ["K"], "count": 4, "sort": ["k"]}
    own = {"name": "a", "columns": [["k", "int"]], "distinct": {"K": 7, "v": 9}}
    catalog = JsonCatalog.of_documents(
        [
            {**own, "buckets": {**buckets, "engine": "spark"}},
            {"name": "b", "columns": [], "buckets": buckets},
        ]
    )
    one, other = catalog.table("a"), catalog.table("b")
    assert (one.distinct_keys(["k"]), one.distinct_keys(["k", "v"])) == (7, 9)
    assert one.distinct_keys(["x"]) is None
    assert (one.buckets.by_spark, other.buckets.by_spark) == (True, False)


def test_a_view_in_a_catalog_file_may_have_no_query():
    columns = [["k", "int"]]
    documents = [
        {"name": "known", "columns": columns, "view": "SELECT 1"},
        {"name": "marked", "view": True},
        {"name": "table", "columns": columns, "view": False},
    ]
    catalog = JsonCatalog.of_documents(documents)
    views = [catalog.table(document["name"]).view for document in documents]
    assert views == ["SELECT 1", "", None]
    assert catalog.table("marked").definition is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "must contain"),
        ('{"tables": [{"columns": []}]}', "'name'"),
        ('{"tables": [{"name": "t", "columns": [["a"]]}]}', "must contain"),
        ('{"tables": ["t"]}', "must contain"),
    ],
)
def test_a_bad_catalog_file_is_an_error_with_its_name(tmp_path, content, message):
    path = tmp_path / "tables.json"
    path.write_text(content)
    with pytest.raises(CatalogFileError, match="tables.json") as caught:
        JsonCatalog.read(path)
    assert message in str(caught.value)


def test_a_missing_catalog_file_is_an_error(tmp_path):
    with pytest.raises(CatalogFileError, match=r"No such file"):
        JsonCatalog.read(tmp_path / "nowhere.json")
