"""Files of small tables: what is read, and what is left to Spark."""

from __future__ import annotations

import bz2
import gzip
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from upath import UPath

from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.worker.files.folder import data_files
from airflow_hive_opt.worker.unanswered import Unanswered
from tests.worker.small_tables import Known, keys_of

SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"


def read(folder, type_, column="k", format_="parquet", columns=None, **storage):
    """The distinct values of a column, sorted, NULL last."""
    known = Known()
    listed = columns or [(column, type_)]
    known.add("d", listed, Storage(str(folder), format_, **storage), by_serde=format_ == "text")
    found = keys_of(known, f"SELECT DISTINCT `d`.`{column}` FROM d AS `d`", f"d.{column}")
    assert found.exact
    return sorted((row[0] for row in found.rows), key=lambda v: (v is None, v))


def refused(folder, type_, **how):
    with pytest.raises(Unanswered) as raised:
        read(folder, type_, **how)
    return str(raised.value)


def parquet(folder, values, type_=None, name="k", file="a.parquet", **options):
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({name: pa.array(values, type_)}), folder / file, **options)
    return folder


def text(folder, content, name="a.txt"):
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


@pytest.mark.parametrize(
    ("values", "stored", "type_"),
    [
        ([1, None, 3], pa.int32(), "int"),
        ([1, 3], pa.int32(), "bigint"),
        ([1, 3], pa.int8(), "tinyint"),
        ([1, 3], pa.int16(), "int"),
        ([1, 127], pa.int32(), "tinyint"),
        ([Decimal("1.50")], pa.decimal128(7, 2), "decimal(7,2)"),
        ([Decimal("1.50")], pa.decimal128(25, 2), "decimal(25,2)"),
        (["", "a", None], pa.string(), "string"),
        (["a", "é\0b"], pa.large_string(), "varchar(5)"),
        (["a", "b"], pa.dictionary(pa.int32(), pa.string()), "string"),
        ([date(1582, 10, 15), date(9999, 12, 31)], pa.date32(), "date"),
        ([False, True, None], pa.bool_(), "boolean"),
    ],
)
def test_parquet_values_of_each_type_are_read(tmp_path, values, stored, type_):
    expected = sorted(values, key=lambda v: (v is None, v))
    assert read(parquet(tmp_path, values, stored), type_) == expected


@pytest.mark.parametrize(
    ("values", "stored", "type_"),
    [
        ([1], pa.int64(), "int"),
        ([300], pa.int32(), "tinyint"),
        ([1], pa.uint32(), "bigint"),
        ([1], pa.int32(), "decimal(7,2)"),
        ([Decimal("1.5")], pa.decimal128(7, 1), "decimal(7,2)"),
        ([b"a"], pa.binary(), "string"),
        ([1.5], pa.float64(), "int"),
        ([1], pa.int32(), "date"),
        ([[1]], pa.list_(pa.int32()), "int"),
        ([date(1582, 10, 14)], pa.date32(), "date"),
        ([{"k": 1}], pa.struct([("k", pa.int32())]), "int"),
    ],
)
def test_parquet_types_that_readers_convert_differently_are_left_to_spark(
    tmp_path, values, stored, type_
):
    refused(parquet(tmp_path, values, stored), type_)


def test_a_parquet_string_that_is_not_utf8_is_left_to_spark(tmp_path):
    array = pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"k": array}), tmp_path / "a.parquet")
    refused(tmp_path, "string")


def test_parquet_columns_match_in_any_case(tmp_path):
    assert read(parquet(tmp_path, [1], pa.int32(), "K"), "int") == [1]
    both = pa.table({"k": pa.array([1], pa.int32()), "K": pa.array([2], pa.int32())})
    pq.write_table(both, tmp_path / "a.parquet")
    assert "several columns named k" in refused(tmp_path, "int")


def test_a_column_missing_in_a_file_is_null_unless_it_may_have_a_default(tmp_path):
    folder = parquet(tmp_path, [1], pa.int32(), "other")
    columns = [("other", "int"), ("k", "int")]
    assert read(folder, "int", columns=columns) == [None]
    part = "spark.sql.sources.schema.part."
    defaults = {f"{part}0": '{"metadata":{"EXISTS_DEF', f"{part}1": 'AULT":"7"}}'}
    assert "default" in refused(folder, "int", columns=columns, parameters=defaults)


def test_hidden_and_empty_files_are_ignored(tmp_path):
    parquet(tmp_path, [1], pa.int32())
    for name in ("_SUCCESS", ".hidden", "_metadata", "empty.parquet"):
        (tmp_path / name).touch()
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_started").write_text("no data")
    assert read(tmp_path, "int") == [1]
    assert [file.path.rpartition("/")[2] for file in data_files(UPath(tmp_path))] == ["a.parquet"]


def test_an_empty_folder_has_no_rows(tmp_path):
    assert read(tmp_path, "int") == []


@pytest.mark.parametrize("name", ["k=1", "inside"])
def test_a_folder_in_the_tables_folder_is_left_to_spark(tmp_path, name):
    parquet(tmp_path, [1], pa.int32())
    (tmp_path / name).mkdir()
    assert "a folder inside" in refused(tmp_path, "int")


def test_unreadable_folders_and_files_are_left_to_spark(tmp_path):
    assert "can't list" in refused(tmp_path / "none", "int")
    text(tmp_path, "no parquet", "a.parquet")
    assert "can't read" in refused(tmp_path, "int")
    for name in ("_x=1", "a._COPYING_"):
        text(tmp_path / "odd", "x", name)
        assert "readers differ" in refused(tmp_path / "odd", "int")
        (tmp_path / "odd" / name).unlink()


def test_files_at_file_and_memory_uris_are_read(tmp_path):
    parquet(tmp_path, [1], pa.int32())
    assert read(f"file:{tmp_path}", "int") == [1]
    folder = UPath("memory://worker/d")
    (folder / "a.parquet").write_bytes((tmp_path / "a.parquet").read_bytes())
    assert read(folder, "int") == [1]


@pytest.mark.parametrize(
    ("values", "stored", "type_"),
    [
        ([1, None], pa.int32(), "int"),
        ([1], pa.int16(), "bigint"),
        (["a", ""], pa.string(), "string"),
        ([date(2020, 2, 29)], pa.date32(), "date"),
        ([Decimal("1.50")], pa.decimal128(7, 2), "decimal(7,2)"),
        ([True], pa.bool_(), "boolean"),
    ],
)
def test_orc_values_of_each_type_are_read(tmp_path, values, stored, type_):
    orc.write_table(pa.table({"K": pa.array(values, stored)}), tmp_path / "a.orc")
    expected = sorted(values, key=lambda v: (v is None, v))
    assert read(tmp_path, type_, format_="orc") == expected


def test_orc_columns_must_agree_by_name_and_position(tmp_path):
    table = pa.table({"a": pa.array([1], pa.int32()), "k": pa.array([2], pa.int32())})
    orc.write_table(table, tmp_path / "a.orc")
    columns = [("a", "int"), ("k", "int"), ("z", "int")]
    assert read(tmp_path, "int", format_="orc", columns=columns) == [2]
    assert read(tmp_path, "int", "z", format_="orc", columns=columns) == [None]
    turned = [("k", "int"), ("a", "int")]
    assert "another position" in refused(tmp_path, "int", format_="orc", columns=turned)
    orc.write_table(table.rename_columns(["_col0", "_col1"]), tmp_path / "a.orc")
    assert "another position" in refused(tmp_path, "int", format_="orc", columns=columns)
    wide = pa.table({"k": pa.array([2**40], pa.int64())})
    orc.write_table(wide, tmp_path / "a.orc")
    assert "another type" in refused(tmp_path, "int", format_="orc")


def hive(folder, type_, column="k", columns=None, parameters=None, **properties):
    named = {name.replace("__", "."): value for name, value in properties.items()}
    storage = {"serde": SERDE, "properties": named, "parameters": parameters or {}}
    return read(folder, type_, column, "text", columns, **storage)


def hive_refused(folder, type_, **how):
    with pytest.raises(Unanswered) as raised:
        hive(folder, type_, **how)
    return str(raised.value)


def test_text_files_with_other_separators_are_read(tmp_path):
    columns = [("a", "string"), ("k", "int")]
    assert hive(text(tmp_path, "x\x011\ny\x01\\N\n"), "int", columns=columns) == [1, None]
    assert hive(text(tmp_path, "x|1\ny|2"), "int", columns=columns, field__delim="|") == [1, 2]
    assert hive(text(tmp_path, "x\t1\n"), "int", columns=columns, field__delim="9") == [1]
    assert hive(text(tmp_path, "x\t1\n"), "int", columns=columns, serialization__format="9") == [1]
    assert hive(text(tmp_path, "x,1\r\ny,2\r\n"), "int", columns=columns, field__delim=",") == [
        1,
        2,
    ]


def test_the_null_format_of_a_text_table_is_respected(tmp_path):
    text(tmp_path, "\\N\n\nNULL\n")
    assert hive(tmp_path, "string") == ["", "NULL", None]
    nulls = {"serialization.null.format": ""}
    assert hive(tmp_path, "string", serialization__null__format="NULL") == ["", "\\N", None]
    assert hive(tmp_path, "string", parameters=nulls) == ["NULL", "\\N", None]


@pytest.mark.parametrize(
    ("type_", "content", "expected"),
    [
        ("int", "1\n-20\nabc\n\n", [-20, 1, None]),
        ("bigint", "9223372036854775807\n", [2**63 - 1]),
        ("decimal(7,2)", "1\n1.5\n-0.25\n", [Decimal("-0.25"), 1, Decimal("1.5")]),
        ("date", "2020-01-31\n\n", [date(2020, 1, 31), None]),
        ("boolean", "true\nfalse\n", [False, True]),
        ("varchar(3)", "abc\n", ["abc"]),
    ],
)
def test_text_values_of_each_type_are_read(tmp_path, type_, content, expected):
    assert hive(text(tmp_path, content), type_) == expected


@pytest.mark.parametrize(
    ("type_", "content"),
    [
        *(("int", each) for each in ("1.5", "+1", " 1", "01", "-0", "2147483648", "1e2")),
        *(("date", each) for each in ("2020-1-5", "2020-02-30", "2020-01-01 00:00:00")),
        *(("decimal(7,2)", each) for each in ("1.005", "123456", "1e2", ".5")),
        *(("boolean", each) for each in ("TRUE", "1", "t")),
        ("date", "1500-01-01"),
        ("varchar(3)", "abcd"),
        ("string", b"\xff"),
        ("string", b"\xef\xbb\xbfa"),
        ("string", "a\rb"),
        ("string", "a\x01b"),
    ],
)
def test_text_values_in_an_unusual_form_are_left_to_spark(tmp_path, type_, content):
    hive_refused(text(tmp_path, content), type_)


def test_text_files_with_escaped_characters_are_left_to_spark(tmp_path):
    escaped = {"escape__delim": "\\", "field__delim": ","}
    columns = [("k", "string"), ("b", "string")]
    assert hive(text(tmp_path, "a,\\N\n\\N,\\N\n"), "string", columns=columns, **escaped) == [
        "a",
        None,
    ]
    for content in ("a\\,b,c\n", "a\\Nb,c\n", "a\\\\,c\n"):
        why = hive_refused(text(tmp_path, content), "string", columns=columns, **escaped)
        assert "escaped" in why
    plain = hive(text(tmp_path, "a\\\\b\n"), "string")
    assert plain == ["a\\\\b"]


@pytest.mark.parametrize(
    "properties",
    [
        {"skip__header__line__count": "1"},
        {"line__delim": ";"},
        {"serialization__encoding": "GBK"},
        {"field__delim": b"\\u00e9".decode("unicode_escape")},
        {"serialization__last__column__takes__rest": "true"},
    ],
)
def test_text_tables_with_unusual_delimiters_are_left_to_spark(tmp_path, properties):
    hive_refused(text(tmp_path, "1\n"), "int", **properties)


def test_other_serdes_and_formats_are_left_to_spark(tmp_path):
    text(tmp_path, "1\n")
    csv = "org.apache.hadoop.hive.serde2.OpenCSVSerde"
    assert "OpenCSVSerde" in refused(tmp_path, "int", format_="text", serde=csv)
    assert "Spark's own text format" in refused(tmp_path, "string", format_="text")
    for format_ in ("csv", "json", "avro", ""):
        refused(tmp_path, "int", format_=format_)
    glob = {"pathglobfilter": "*.parquet"}
    assert "pathglobfilter" in refused(tmp_path, "int", properties=glob)
    by_index = {"parquet.column.index.access": "true"}
    assert "positions" in refused(tmp_path, "int", parameters=by_index)
    acid = {"transactional": "TRUE"}
    assert "transactional" in refused(tmp_path, "int", format_="orc", parameters=acid)


def test_gzip_and_bzip2_text_files_are_read_and_others_left_to_spark(tmp_path):
    text(tmp_path, gzip.compress(b"1\n") + gzip.compress(b"2\n"), "a.gz")
    text(tmp_path, bz2.compress(b"3\n"), "b.bz2")
    assert hive(tmp_path, "int") == [1, 2, 3]
    text(tmp_path, gzip.compress(b"1\n")[:-5], "a.gz")
    assert "can't read" in hive_refused(tmp_path, "int")
    (tmp_path / "a.gz").unlink()
    text(tmp_path, b"x", "c.snappy")
    assert "compressed" in hive_refused(tmp_path, "int")


def orc_of(folder, values):
    folder.mkdir(exist_ok=True)
    orc.write_table(pa.table({"k": values}), folder / "a.orc", compression="uncompressed")
    return folder


def test_orc_strings_that_end_with_spaces_are_left_to_spark(tmp_path):
    """Of a file with a CHAR, Spark removes the padding, and PyArrow does not."""
    orc_of(tmp_path, ["ab   ", "c    "])
    file = tmp_path / "a.orc"
    data = bytearray(file.read_bytes())
    at = data.rindex(b"\x08\x07\x20\x00")  # in the footer: kind STRING, maximum length 0
    data[at + 1], data[at + 3] = 17, 5  # CHAR(5)
    file.write_bytes(data)
    assert orc.ORCFile(file).read()["k"].to_pylist() == ["ab   ", "c    "]
    assert "ends in a space" in refused(tmp_path, "string", format_="orc")
    assert read(orc_of(tmp_path / "plain", ["a b", "c"]), "string", format_="orc") == ["a b", "c"]


@pytest.mark.parametrize("format_", ["parquet", "orc"])
def test_small_files_that_need_much_memory_are_left_to_spark(tmp_path, format_, monkeypatch):
    monkeypatch.setattr("airflow_hive_opt.worker.files.rows.MOST_IN_MEMORY", 1_000_000)
    values = ["x" * 1000] * 500
    if format_ == "parquet":
        parquet(tmp_path, values)
    else:
        orc_of(tmp_path, values)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 1_000_000
    assert read(tmp_path, "string", format_=format_) == ["x" * 1000]
    # each file alone has room
    (tmp_path / f"b.{format_}").write_bytes((tmp_path / f"a.{format_}").read_bytes())
    (tmp_path / f"c.{format_}").write_bytes((tmp_path / f"a.{format_}").read_bytes())
    assert "too much memory" in refused(tmp_path, "string", format_=format_)


def test_compressed_text_files_that_need_much_memory_are_left_to_spark(tmp_path, monkeypatch):
    monkeypatch.setattr("airflow_hive_opt.worker.files.rows.MOST_IN_MEMORY", 1_000_000)
    for name in ("a.gz", "b.gz"):
        text(tmp_path, gzip.compress(b"x" * 600_000), name)
    assert "large" in hive_refused(tmp_path, "string")


def test_many_rows_of_files_without_the_column_are_left_to_spark(tmp_path, monkeypatch):
    monkeypatch.setattr("airflow_hive_opt.worker.files.rows.MOST_IN_MEMORY", 1_000)
    parquet(tmp_path, [1] * 1000, pa.int32(), "other")
    columns = [("other", "int"), ("k", "int")]
    assert "too much memory" in refused(tmp_path, "int", columns=columns)


def test_files_that_take_too_long_to_read_are_left_to_spark(tmp_path, monkeypatch):
    monkeypatch.setattr("airflow_hive_opt.worker.files.rows.MOST_SECONDS", -1)
    assert "takes more than" in refused(parquet(tmp_path, [1]), "bigint")


def test_tables_whose_partitions_are_not_in_the_metastore_are_left_to_spark(tmp_path):
    """Of such a table, Spark finds the folders."""
    known = partitioned(tmp_path, ["int"], [])
    known.tables["d"] = replace(known.tables["d"], partitions_in_metastore=False)
    with pytest.raises(Unanswered, match="d, whose partitions are not in the metastore"):
        keys_of(known, "SELECT DISTINCT `d`.`k` FROM d AS `d`", "d.k")


def partitioned(folder, types, values, storage=None, by_serde=False):
    known = Known()
    partitions = []
    for number, texts in enumerate(values):
        place = folder / str(number)
        parquet(place, [number], pa.int32())
        partitions.append((Partition(texts), storage or Storage(str(place), "parquet")))
    columns = [(f"p{at}", type_) for at, type_ in enumerate(types)]
    own = Storage(str(folder), "parquet", storage.serde if storage else "")
    known.add("d", [("k", "int")], own, columns, partitions, by_serde)
    return known


def test_partition_values_are_typed_keys(tmp_path):
    known = partitioned(tmp_path, ["int", "date"], [("8", "2020-01-31"), (None, None)])
    sql = "SELECT DISTINCT `d`.`k`, `d`.`p0`, `d`.`p1` FROM d AS `d`"
    found = keys_of(known, sql, "d.k", "d.p0", "d.p1")
    assert set(found.rows) == {(0, 8, date(2020, 1, 31)), (1, None, None)}


@pytest.mark.parametrize(
    ("type_", "value"), [("int", "08"), ("int", "x"), ("date", "2020-1-1"), ("boolean", "TRUE")]
)
def test_partition_values_in_an_unusual_form_are_left_to_spark(tmp_path, type_, value):
    known = partitioned(tmp_path, [type_], [(value,)])
    with pytest.raises(Unanswered, match="unusual form"):
        keys_of(known, "SELECT DISTINCT `d`.`p0` FROM d AS `d`", "d.p0")


def test_the_default_partition_of_a_serde_is_left_to_spark(tmp_path):
    storage = Storage(str(tmp_path / "0"), "parquet", "parquet.hive.serde.ParquetHiveSerDe")
    known = partitioned(tmp_path, ["string"], [(None,)], storage, by_serde=True)
    with pytest.raises(Unanswered, match="default partition"):
        keys_of(known, "SELECT DISTINCT `d`.`p0` FROM d AS `d`", "d.p0")


def test_count_of_all_rows_needs_no_column(tmp_path):
    known = partitioned(tmp_path, ["int"], [("1",), ("2",)])
    parquet(tmp_path / "0", [1, 2, 3], pa.int32())
    sql = "SELECT DISTINCT `x`.`n` FROM (SELECT count(*) AS n FROM d) AS `x` WHERE x.n > 1"
    assert keys_of(known, sql, "x.n").rows == ((4,),)


def test_a_table_above_the_workers_size_limit_is_left_to_spark(tmp_path):
    from airflow_hive_opt.worker.key_query import collect
    from airflow_hive_opt.worker.tables import Tables
    from tests.worker.small_tables import BOUNDS, key_source

    known = Known()
    known.add("d", [("k", "int")], Storage(str(parquet(tmp_path, [1], pa.int32())), "parquet"))
    source = key_source("SELECT DISTINCT `d`.`k` FROM d AS `d`", "d.k")
    with pytest.raises(Unanswered, match="more than 10 bytes"):
        collect(source, Tables(known, UPath, most_bytes=10), BOUNDS, {})
