"""``KeyIndexOperator``: arguments, tables of each kind of connection, and its output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from upath import UPath

from airflow_hive_opt.operators.key_index import KeyIndexOperator

pytest.importorskip("pyiceberg")  # environments of other versions do not have it

from pyiceberg.catalog import load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
)
from pyiceberg.types import (
    DateType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

from tests.key_index.tables import found, holding_by_rows, orders

CONFIGURED = "AIRFLOW__HIVE_OPT__INDEX_PATH"


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table in the catalog of the connection ``lake``."""
    uri = f"sqlite:///{tmp_path}/catalog.db"
    extra = {"type": "sql", "warehouse": f"file://{tmp_path}/lake"}
    connection = {"conn_type": "iceberg", "host": uri, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(connection))
    catalog = load_catalog("lake", uri=uri, **extra)
    catalog.create_namespace("dw")
    made = catalog.create_table("dw.orders", orders(1).schema)
    made.append(orders(1, 2))
    made.append(orders(2, 3, 3))
    return made


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv(CONFIGURED, str(tmp_path / "indexes"))
    return UPath(tmp_path / "indexes")


def executed(table="lake.dw.orders", column="order_id", context=None, **options):
    made = KeyIndexOperator(task_id="index", table=table, column=column, **options)
    made.render_template_fields(context or {})
    return made.execute(context or {})


def test_a_table_of_a_catalog(table, root, capsys):
    summary = executed(catalog_conn_id="lake")
    seconds = summary.pop("seconds")
    assert seconds >= 0
    assert summary.pop("bytes_per_key") == pytest.approx(summary.pop("bytes") / 4, abs=0.001)
    assert summary == {
        "new_files": 2,
        "new_keys": 4,
        "left_out": {},
        "files": 2,
        "keys": 4,
        "parts": 1,
    }
    assert json.dumps(summary)
    assert "the index of order_id of lake.dw.orders covers 2 data files" in capsys.readouterr().out
    assert found(root, table, [1]) == holding_by_rows(table, [1])
    again = executed(catalog_conn_id="lake")
    assert (again["new_files"], again["files"]) == (0, 2)


def test_all_arguments_are_templates(table, root):
    values = {
        "t": "lake.dw.orders",
        "c": "order_id",
        "conn": "lake",
        "again": "True",
    }
    options = {
        "catalog_conn_id": "{{ conn }}",
        "rebuild": "{{ again }}",
    }
    for _ in range(2):
        assert executed("{{ t }}", "{{ c }}", values, **options)["new_files"] == 2
    assert found(root, table, [3]) == holding_by_rows(table, [3])


def test_the_folder_of_a_table(table, root, tmp_path):
    """As a Hadoop catalog has it: numbered metadata, and a hint."""
    place = Path(table.location().removeprefix("file://")) / "metadata"
    current = Path(table.metadata_location.removeprefix("file://"))
    (place / "v1.metadata.json").write_bytes(current.read_bytes())
    (place / "version-hint.text").write_text("1")
    assert executed(table.location())["new_files"] == 2
    assert executed(str(place.parent) + "/")["new_files"] == 0
    assert found(root, table, [1]) == holding_by_rows(table, [1])


def test_a_table_of_a_metastore(table, root, monkeypatch, tmp_path):
    pytest.importorskip("moto")
    from tests.services.glue_stand_in import REGION, glue_stand_in

    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with glue_stand_in() as glue:
        parameters = {"table_type": "ICEBERG", "metadata_location": table.metadata_location}
        glue.create_table("dw.orders", [], parameters=parameters, location=table.location())
        glue.create_table("dw.plain", [])
        extra = {"region_name": REGION, "endpoint_url": glue.endpoint}
        connection = {"conn_type": "aws", "login": "a", "password": "b", "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_METASTORE_DEFAULT", json.dumps(connection))
        assert executed("dw.orders")["new_files"] == 2
        assert (
            executed("spark_catalog.dw.orders", metastore_conn_id="metastore_default")["new_files"]
            == 0
        )
        for name in ("dw.plain", "dw.nothing"):
            with pytest.raises(AirflowException, match="is no Iceberg table of the metastore"):
                executed(name)
    assert found(root, table, [1]) == holding_by_rows(table, [1])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"column": "price"}, "has no column 'price'"),
        ({"column": ""}, "column must be a text"),
        ({"table": None}, "table must be a text"),
        ({"catalog_conn_id": ""}, "catalog_conn_id must be a text"),
        ({"catalog_conn_id": "none"}, "there is no connection 'none'"),
        ({"rebuild": "perhaps"}, "rebuild must be true or false, not 'perhaps'"),
    ],
)
def test_wrong_arguments_fail_without_a_retry(table, root, options, error):
    with pytest.raises(AirflowFailException, match=error):
        executed(**{"catalog_conn_id": "lake", **options})


def test_a_folder_that_can_not_be_used_fails_without_a_retry(table, monkeypatch):
    monkeypatch.setenv(CONFIGURED, "nowhere://a/b")
    with pytest.raises(AirflowFailException, match="index_path 'nowhere://a/b' can't be used"):
        executed(catalog_conn_id="lake")


@pytest.mark.parametrize(
    ("source", "transform", "is_usable"),
    [
        ("day", IdentityTransform(), True),
        ("day", MonthTransform(), True),
        ("at", DayTransform(), True),
        ("local", DayTransform(), False),
        ("order_id", BucketTransform(4), False),
        ("name", TruncateTransform(1), False),
    ],
)
def test_a_layout_that_no_statement_can_use_is_a_warning(
    table, root, capsys, source, transform, is_usable
):
    columns = ("order_id", LongType()), ("name", StringType()), ("day", DateType())
    times = ("at", TimestamptzType()), ("local", TimestampType())
    fields = [NestedField(at, *each) for at, each in enumerate((*columns, *times), 1)]
    number = next(str(field.field_id) for field in fields if field.name == source)
    spec = PartitionSpec(PartitionField(number, 1000, transform, "part"))
    table.catalog.create_table("dw.other", Schema(*fields), partition_spec=spec)
    executed("lake.dw.other", catalog_conn_id="lake")
    assert ("no statement can use the index" in capsys.readouterr().out) is not is_usable


def test_without_a_folder_the_task_fails(table, monkeypatch):
    monkeypatch.delenv(CONFIGURED, raising=False)
    with pytest.raises(AirflowFailException, match=r"set \[hive_opt\] index_path"):
        executed(catalog_conn_id="lake")


def test_a_column_of_another_type_fails_without_a_retry(table, root):
    with table.update_schema() as update:
        from pyiceberg.types import DoubleType

        update.add_column("price", DoubleType())
    with pytest.raises(AirflowFailException, match="the column price of lake.dw.orders has the"):
        executed(column="price", catalog_conn_id="lake")


def test_what_may_be_over_soon_fails_with_a_retry(table, root, tmp_path, monkeypatch):
    with pytest.raises(AirflowException, match="the catalog has no Iceberg table") as error:
        executed("lake.dw.nothing", catalog_conn_id="lake")
    assert not isinstance(error.value, AirflowFailException)
    monkeypatch.setenv(CONFIGURED, str(tmp_path / "a file"))
    (tmp_path / "a file").write_bytes(b"")
    with pytest.raises(AirflowException, match="can't"):
        executed(catalog_conn_id="lake")


@pytest.fixture
def delta(tmp_path):
    """The folder of a Delta table."""
    pytest.importorskip("deltalake")
    from tests.key_index.delta_tables import append

    for keys in ((1, 2), (2, 3, 3)):
        append(tmp_path / "delta_orders", orders(*keys, day=["2024-01-01"] * len(keys)))
    return tmp_path / "delta_orders"


@pytest.mark.parametrize("text", ["{}", "{}/", "file:{}", "delta.`{}`", "DELTA.`file://{}`"])
def test_the_folder_of_a_delta_table(delta, root, capsys, text):
    from tests.key_index import delta_tables

    summary = executed(text.format(delta))
    assert (summary["new_files"], summary["new_keys"], summary["left_out"]) == (2, 4, {})
    assert "covers 2 data files with 4 keys" in capsys.readouterr().out
    assert executed(str(delta))["new_files"] == 0
    for keys in ([1], [2], [9]):
        expected = delta_tables.holding_by_rows(delta, keys)
        assert delta_tables.found(root, delta, keys) == expected


def test_with_a_catalog_a_folder_is_one_of_iceberg(delta, table, root):
    with pytest.raises(AirflowException, match="there is no version of"):
        executed(str(delta), catalog_conn_id="lake")


def test_a_delta_table_of_a_metastore(delta, root, monkeypatch, tmp_path):
    pytest.importorskip("moto")
    from tests.key_index import delta_tables
    from tests.services.glue_stand_in import REGION, glue_stand_in

    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with glue_stand_in() as glue:
        parameters = {"spark.sql.sources.provider": "delta"}
        glue.create_table("dw.orders", [], parameters=parameters, location=f"file:{delta}")
        glue.create_table("dw.gone", [], parameters=parameters, location=f"file:{delta}/none")
        extra = {"region_name": REGION, "endpoint_url": glue.endpoint}
        connection = {"conn_type": "aws", "login": "a", "password": "b", "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_METASTORE_DEFAULT", json.dumps(connection))
        assert executed("dw.orders")["new_files"] == 2
        assert executed("spark_catalog.dw.orders")["new_files"] == 0
        with pytest.raises(AirflowException, match=r"can't read the log of dw\.gone") as error:
            executed("dw.gone")
        assert not isinstance(error.value, AirflowFailException)
    assert delta_tables.found(root, delta, [1]) == delta_tables.holding_by_rows(delta, [1])


def test_a_column_of_a_delta_table_that_can_have_no_index(delta, root):
    with pytest.raises(AirflowFailException, match="day of .* is a partition column"):
        executed(str(delta), "day")


def test_a_delta_table_without_partitions_is_a_warning(root, tmp_path, capsys):
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(tmp_path / "plain", orders(1))
    executed(str(tmp_path / "plain"))
    assert "must be partitioned by a column" in capsys.readouterr().out


def test_a_missing_library_fails_without_a_retry(delta, root, monkeypatch):
    for module in ("provider.key_indexes", "key_index.delta_log"):
        monkeypatch.setattr(f"airflow_hive_opt.{module}.find_spec", lambda _: None)
    with pytest.raises(AirflowFailException, match=r"pip install 'airflow-hive-opt\[delta\]'"):
        executed(str(delta))
    with pytest.raises(AirflowFailException, match=r"pip install 'airflow-hive-opt\[iceberg\]'"):
        executed(str(delta.parent))
