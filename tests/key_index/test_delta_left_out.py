"""Data files of Delta tables that an index can't cover, so that each lookup gives them."""

from __future__ import annotations

from datetime import date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("deltalake")  # environments of other versions do not have it

from tests.key_index.delta_tables import (
    add_file,
    append,
    built,
    found,
    orders,
    with_schema,
)

ODD = "day=2024-01-01/odd.parquet"


@pytest.fixture
def place(tmp_path):
    made = tmp_path / "orders"
    append(made, orders(1, 2, customer=pa.array([5, 6], pa.int32()), due=[date(2024, 1, 1)] * 2))
    return made


def column(values, type_=None, name="order_id"):
    return pa.table({name: pa.array(values, type_)})


def is_left_out(root, place, why, of="order_id", missing=99):
    """Whether the odd file is left out, and so is read for any key."""
    assert built(root, place, of).left_out == {why: 1}
    assert found(root, place, [missing], of) == {ODD}


@pytest.mark.parametrize(
    "rows",
    [
        column(["1", "2"]),
        column([1.0, 2.0]),
        column([1, 2], pa.uint32()),
        column([True]),
        column([b"1"]),
        column([[1]]),
        column([{"a": 1}]),
        column([date(2024, 1, 1)]),
        column([datetime(2024, 1, 1)], pa.timestamp("us")),
    ],
)
def test_files_with_another_type(root, place, rows):
    add_file(place, ODD, 1, rows)
    type_ = pq.read_schema(place / ODD).field(0).type
    is_left_out(root, place, f"its column has the type {type_}, not bigint")


def test_times_of_96_bits_are_no_numbers(root, place):
    add_file(place, ODD, 1)
    pq.write_table(
        column([datetime(2024, 1, 1)], pa.timestamp("us")),
        place / ODD,
        use_deprecated_int96_timestamps=True,
    )
    is_left_out(root, place, "its column has the type timestamp[ns], not bigint")


@pytest.mark.parametrize("type_", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
def test_numbers_of_each_width_are_covered(root, place, type_):
    add_file(place, ODD, 1, column([7, None], type_))
    assert built(root, place).left_out == {}
    assert found(root, place, [7]) == {ODD}


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1])
def test_numbers_that_the_type_does_not_have(root, place, value):
    """Spark might cut them to the width of the column."""
    add_file(place, ODD, 1, column([7, value], pa.int64(), "customer"))
    is_left_out(root, place, "it has values that are no int", "customer")


@pytest.mark.parametrize(("type_", "bits"), [(pa.int8(), 8), (pa.int16(), 16)])
def test_numbers_that_a_narrow_type_does_not_have(root, tmp_path, type_, bits):
    place = tmp_path / "narrow"
    append(place, orders(1, n=pa.array([1], type_)))
    add_file(place, ODD, 1, column([2 ** (bits - 1)], pa.int32(), "n"))
    name = {8: "tinyint", 16: "smallint"}[bits]
    is_left_out(root, place, f"it has values that are no {name}", "n")


@pytest.mark.parametrize("name", ["ORDER_ID", "Order_Id", "order_id"])
def test_a_column_is_found_in_any_case(root, place, name):
    add_file(place, ODD, 1, column([7], pa.int64(), name))
    assert built(root, place).left_out == {}
    assert found(root, place, [7]) == {ODD}


@pytest.mark.parametrize("names", [("order_id", "ORDER_ID"), ("ORDER_ID", "Order_Id")])
def test_files_with_two_columns_of_one_name(root, place, names):
    rows = pa.table({name: pa.array([at], pa.int64()) for at, name in enumerate(names)})
    add_file(place, ODD, 1, rows)
    is_left_out(root, place, "it has several columns of one name, in any case")


def test_files_with_one_name_twice(root, place):
    key = pa.array([1], pa.int64())
    add_file(place, ODD, 1, pa.Table.from_arrays([key, key], ["order_id", "order_id"]))
    is_left_out(root, place, "it has several columns of one name, in any case")


@pytest.mark.parametrize(("name", "in_file"), [("straße", "STRASSE"), ("\u017f", "s")])
def test_names_that_programs_compare_in_different_ways(root, tmp_path, name, in_file):
    place = tmp_path / "names"
    append(place, orders(1, **{name: pa.array([1], pa.int64())}))
    add_file(place, ODD, 1, column([7], pa.int64(), in_file))
    is_left_out(root, place, "it has several columns of one name, in any case", name)


def test_a_name_with_a_dot_is_no_field_of_a_struct(root, tmp_path):
    place = tmp_path / "dots"
    append(place, orders(1, **{"a.b": pa.array([1], pa.int64()), "a": pa.array([{"b": 3}])}))
    add_file(place, ODD, 1, pa.table({"a": pa.array([{"b": 8}])}))
    built(root, place, "a.b")
    assert len(found(root, place, [1], "a.b")) == 1
    assert found(root, place, [3], "a.b") == found(root, place, [8], "a.b") == set()


def test_files_without_the_column_have_no_key(root, place):
    add_file(place, ODD, 1, column([7], pa.int64(), "other"))
    assert built(root, place).left_out == {}
    assert found(root, place, [7]) == set()


def test_files_without_a_column_that_has_a_default_value(root, place):
    """Of a table of Parquet files, to which a column was added before it was converted."""
    with_schema(place, lambda each: each["order_id"]["metadata"].update(EXISTS_DEFAULT="7"))
    add_file(place, ODD, 1, column([7], pa.int64(), "other"))
    why = "it was written before the column was added, with a default value"
    is_left_out(root, place, why)


@pytest.mark.parametrize(
    ("days", "is_covered"),
    [
        ([date(1582, 10, 15), None], True),
        ([date(1582, 10, 14), date(2024, 1, 1)], False),
        ([date(1, 1, 1)], False),
        (pa.array([-800_000], pa.int32()).cast(pa.date32()), False),
        (pa.array([3_000_000], pa.int32()).cast(pa.date32()), False),
    ],
)
def test_dates_that_programs_read_in_different_ways(root, place, days, is_covered):
    add_file(place, ODD, 1, column(days, pa.date32(), "due"))
    why = "it has values that are dates before 1582-10-15 or after 9999-12-31"
    if not is_covered:
        is_left_out(root, place, why, "due", date(2000, 1, 1))
        return
    assert built(root, place, "due").left_out == {}
    assert found(root, place, [date(1582, 10, 15)], "due") == {ODD}


def test_dates_of_the_julian_calendar(root, place):
    rows = column([date(2024, 1, 1)], pa.date32(), "due")
    rows = rows.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    add_file(place, ODD, 1, rows)
    is_left_out(root, place, "its dates are of the Julian calendar", "due", date(2000, 1, 1))
    assert built(root, place).left_out == {}


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_encrypted_files(root, place, plaintext_footer):
    encryption = pytest.importorskip("pyarrow.parquet.encryption")

    class Keys(encryption.KmsClient):
        def wrap_key(self, key_bytes, master_key_identifier):
            return key_bytes.hex()

        def unwrap_key(self, wrapped_key, master_key_identifier):
            return bytes.fromhex(wrapped_key)

    wanted = encryption.EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["order_id"]}, plaintext_footer=plaintext_footer
    )
    factory = encryption.CryptoFactory(lambda _: Keys())
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), wanted)
    rows = column([7], pa.int64())
    add_file(place, ODD, 1)
    with pq.ParquetWriter(place / ODD, rows.schema, encryption_properties=properties) as file:
        file.write_table(rows)
    is_left_out(root, place, "it is encrypted")


TEXTS = pa.array(["a", "b", None, "a"])
KINDS = {
    "dictionary": TEXTS.dictionary_encode(),
    **{str(type_): TEXTS.cast(type_) for type_ in (pa.large_string(), pa.string_view())},
    "binary": TEXTS.cast(pa.binary()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_texts_of_each_kind_are_read(root, tmp_path, kind):
    place = tmp_path / "texts"
    append(place, orders(1, key=["x"]))
    keys = KINDS[kind]
    add_file(place, ODD, 1, pa.table({"key": keys}))
    assert built(root, place, "key").new_keys == 3
    assert found(root, place, ["b"], "key") == {ODD}
    assert found(root, place, ["c"], "key") == set()
