"""Which partitions an Iceberg table has. PyIceberg writes its metadata; there are no data files."""

from __future__ import annotations

import socket
from datetime import date
from uuid import uuid4

import pytest

from airflow_hive_opt.metastores.iceberg import catalog as iceberg_catalog
from airflow_hive_opt.metastores.iceberg.catalog import Absent, CatalogError, IcebergTables
from airflow_hive_opt.metastores.required import Required

pytest.importorskip("pyiceberg")  # environments of other versions do not have it

from pyiceberg.catalog import load_catalog
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
)
from pyiceberg.typedef import Record
from pyiceberg.types import (
    DateType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "Day", DateType(), required=False),
    NestedField(3, "name", StringType(), required=False),
    NestedField(4, "at", TimestamptzType(), required=False),
    NestedField(5, "local", TimestampType(), required=False),
)
TYPES = {"id": "bigint", "day": "date", "name": "string", "at": "timestamp", "local": "timestamp"}
MICROS = 1_704_067_200_000_000  # 2024-01-01T00:00:00Z
DAY = 19_723  # 2024-01-01


@pytest.fixture
def properties(tmp_path):
    return {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"file://{tmp_path}/warehouse",
    }


@pytest.fixture
def catalog(properties):
    made = load_catalog("lake", **properties)
    made.create_namespace("dw")
    return made


@pytest.fixture
def tables(catalog, properties):
    return IcebergTables(properties)


def spec(*fields):
    """A spec of pairs of a column's number and a transform."""
    made = (
        PartitionField(source, 1000 + at, transform, f"p{at}")
        for at, (source, transform) in enumerate(fields)
    )
    return PartitionSpec(*made)


def append(table, *partitions, bounds=None):
    """Commits a file for each partition; ``bounds`` are those of all files, by column number."""
    lower, upper = (
        {
            number: to_bytes(SCHEMA.find_type(number), both[end])
            for number, both in (bounds or {}).items()
        }
        for end in (0, 1)
    )
    table.refresh()
    with (
        table.transaction() as transaction,
        transaction.update_snapshot().fast_append() as files,
    ):
        for values in partitions:
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"file:///nowhere/{uuid4()}.parquet",
                file_format=FileFormat.PARQUET,
                partition=Record(*values),
                record_count=1,
                file_size_in_bytes=1,
                lower_bounds=lower,
                upper_bounds=upper,
            )
            file.spec_id = table.spec().spec_id
            files.append_data_file(file)
    table.refresh()


def remove(table, partition):
    """Commits a snapshot without the files of a partition."""
    with (
        table.transaction() as transaction,
        transaction.update_snapshot().overwrite() as files,
    ):
        for task in table.scan().plan_files():
            if task.file.partition[0] == partition:
                files.delete_data_file(task.file)


def wanted(*tuples, columns=("day",), table="lake.dw.t"):
    types = tuple(TYPES[name] for name in columns)
    return Required(table, columns, types, columns, tuples, "iceberg")


def days(*numbers):
    return tuple((date(2024, 1, number),) for number in numbers)


def test_missing_partitions_of_an_iceberg_table_are_those_without_files(catalog, tables):
    required = wanted(*days(1, 2, 3))
    nothing = tables.absent(required)
    assert nothing == Absent(days(1, 2, 3), "the catalog has no Iceberg table dw.t")
    table = catalog.create_table("dw.t", SCHEMA, partition_spec=spec((2, IdentityTransform())))
    assert tables.absent(required) == Absent(days(1, 2, 3), "the Iceberg table lake.dw.t is empty")
    append(table, (DAY,), (None,))
    assert tables.absent(required) == Absent(days(2, 3))
    append(table, (DAY + 1,), (DAY + 2,), (DAY + 3,))
    assert tables.absent(required) == Absent(())
    remove(table, DAY + 1)
    assert tables.absent(required) == Absent(days(2))
    catalog.drop_table("dw.t")
    assert tables.absent(required) == nothing
    table = catalog.create_table("dw.t", SCHEMA, partition_spec=spec((2, IdentityTransform())))
    append(table, (DAY + 1,))
    assert tables.absent(required) == Absent(days(1, 3))


@pytest.mark.parametrize(
    ("column", "number", "transform", "partition", "present", "absent"),
    [
        ("id", 1, BucketTransform(8), BucketTransform(8).transform(LongType())(5), 5, 6),
        ("id", 1, TruncateTransform(10), -10, -1, 0),
        ("day", 2, MonthTransform(), 648, date(2024, 1, 31), date(2024, 2, 1)),
        ("day", 2, MonthTransform(), -1, date(1969, 12, 31), date(1970, 1, 1)),
        ("name", 3, TruncateTransform(2), "é😀", "é😀x", "é"),
        ("name", 3, IdentityTransform(), "", "", "null"),
        ("at", 4, DayTransform(), DAY, MICROS + 1, MICROS - 1),
        ("at", 4, DayTransform(), -1, -1, 0),
        ("at", 4, IdentityTransform(), MICROS, MICROS, MICROS + 1),
    ],
)
def test_partitions_of_each_transform_are_found(
    catalog, tables, column, number, transform, partition, present, absent
):
    table = catalog.create_table("dw.t", SCHEMA, partition_spec=spec((number, transform)))
    append(table, (partition,))
    required = wanted((present,), (absent,), columns=(column,))
    assert tables.absent(required).tuples == ((absent,),)


def test_required_values_may_cover_all_or_some_partition_columns(catalog, tables):
    fields = spec((3, IdentityTransform()), (2, DayTransform()), (2, MonthTransform()))
    append(
        catalog.create_table("dw.t", SCHEMA, partition_spec=fields),
        ("a", DAY, 648),
        ("b", DAY + 1, 648),
        ("c", None, None),
    )
    pairs = tuple((day, name) for (day,) in days(1, 2) for name in "ab")
    required = wanted(*pairs, columns=("day", "name"))
    assert tables.absent(required).tuples == (pairs[1], pairs[2])
    assert tables.absent(wanted(*days(1, 2, 3))).tuples == days(3)


def change_spec(table, remove, **added):
    with table.update_spec() as update:
        update.remove_field(remove)
        for name, (column, transform) in added.items():
            update.add_field(column, transform, name)
    table.refresh()


def test_files_of_an_earlier_spec_count_by_their_bounds(catalog, tables):
    """A monthly file does not have the days after its highest, which the daily files will have."""
    table = catalog.create_table("dw.t", SCHEMA, partition_spec=spec((2, MonthTransform())))
    append(table, (648,), bounds={2: (DAY, DAY + 9)})
    required = wanted(*days(1, 10, 11), (date(2024, 2, 1),))
    assert tables.absent(required).tuples == wanted((date(2024, 2, 1),)).tuples
    change_spec(table, "p0", by_day=("Day", DayTransform()))
    assert tables.absent(required).tuples == (*days(11), (date(2024, 2, 1),))
    append(table, (DAY + 10,))
    assert tables.absent(required).tuples == ((date(2024, 2, 1),),)


def test_unpartitioned_files_count_by_their_bounds(catalog, tables):
    table = catalog.create_table("dw.t", SCHEMA)
    append(table, (), bounds={2: (DAY, DAY + 1), 3: ("b", "c")})
    append(table, ())  # its bounds are not known
    with table.update_spec() as update:
        update.add_identity("Day")
        update.add_identity("name")
    pairs = tuple((day, name) for (day,) in days(1, 3) for name in "abc")
    absent = tables.absent(wanted(*pairs, columns=("day", "name"))).tuples
    assert [pair for pair in pairs if pair not in absent] == [
        (date(2024, 1, 1), "b"),
        (date(2024, 1, 1), "c"),
    ]


def test_an_earlier_spec_with_the_same_partition_column_needs_no_bounds(catalog, tables):
    fields = spec((2, IdentityTransform()), (1, BucketTransform(2)))
    table = catalog.create_table("dw.t", SCHEMA, partition_spec=fields)
    append(table, (DAY, 1))
    change_spec(table, "p1", by_day=("Day", DayTransform()))
    assert tables.absent(wanted(*days(1, 2))).tuples == days(2)
    change_spec(table, "by_day")
    with table.update_spec() as update:
        update.remove_field("p0")
    assert tables.absent(wanted(*days(1, 2))).tuples == days(2)


def test_a_removed_coarser_partition_field_needs_no_bounds(catalog, tables):
    fields = spec((2, MonthTransform()), (2, DayTransform()))
    table = catalog.create_table("dw.t", SCHEMA, partition_spec=fields)
    append(table, (648, DAY))
    with table.update_spec() as update:
        update.remove_field("p0")
    assert tables.absent(wanted(*days(1, 2))).tuples == days(2)


def test_a_dropped_column_or_one_of_another_type_is_an_error(catalog, tables):
    table = catalog.create_table("dw.t", SCHEMA, partition_spec=spec((1, IdentityTransform())))
    append(table, (5,))
    change_spec(table, "p0", by_day=("Day", DayTransform()))
    with table.update_schema() as update:
        update.delete_column("id")
    append(table, (DAY,))
    assert tables.absent(wanted(*days(1, 2))).tuples == days(2)
    with pytest.raises(CatalogError, match=r"lake\.dw\.t has no column id"):
        tables.absent(wanted((5,), columns=("id",)))
    with pytest.raises(CatalogError, match="column local of .* is a timestamp in the catalog"):
        tables.absent(wanted((5,), columns=("local",)))


def test_only_manifests_that_may_have_a_key_are_read_and_only_after_changes(
    catalog, tables, monkeypatch
):
    table = catalog.create_table("dw.t", SCHEMA, partition_spec=spec((1, TruncateTransform(10))))
    for start in range(0, 100, 10):
        append(table, (start,))
    append(table, (None,))
    read = []
    fetch = ManifestFile.fetch_manifest_entry

    def counting(self, *given, **named):
        read.append(self.manifest_path)
        return fetch(self, *given, **named)

    monkeypatch.setattr(ManifestFile, "fetch_manifest_entry", counting)
    required = wanted((5,), (51,), (200,), columns=("id",))
    for _ in range(2):
        assert tables.absent(required).tuples == ((200,),)
        assert len(read) == 2
    append(table, (200,))
    assert tables.absent(required).tuples == ()
    assert len(read) == 5


def test_many_required_keys_are_compared(catalog, tables):
    table = catalog.create_table("dw.t", SCHEMA, partition_spec=spec((1, IdentityTransform())))
    append(table, *((number,) for number in range(0, 2_000, 2)))
    required = wanted(*((number,) for number in range(50_000)), columns=("id",))
    assert len(tables.absent(required).tuples) == 49_000


def test_tables_are_found_in_their_own_catalog(properties):
    """Of two catalogs in one database each has its own tables."""
    for name in ("lake", "other"):
        made = load_catalog(name, **properties)
        made.create_namespace("dw")
        table = made.create_table(
            f"dw.of_{name}", SCHEMA, partition_spec=spec((2, IdentityTransform()))
        )
        append(table, (DAY,))
    tables = IcebergTables(properties)
    assert tables.absent(wanted(*days(1), table="lake.dw.of_lake")) == Absent(())
    assert tables.absent(wanted(*days(1), table="lake.dw.of_other")).tuples == days(1)
    assert tables.absent(wanted(*days(1), table="other.dw.of_other")) == Absent(())


def test_a_catalog_that_does_not_answer_tells_no_secret():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for properties in (
            {"type": "rest", "uri": f"http://u:hid%20den@{address}", "credential": "me:secret-1"},
            {"type": "hive", "uri": f"thrift://{address}", "s3.secret-access-key": "secret-2"},
            {"type": "sql", "uri": f"postgresql+psycopg://u:hid%20den@{address}/secret-3"},
        ):
            tables = IcebergTables(properties)
            with pytest.raises(CatalogError) as failed:
                tables.absent(wanted(*days(1)))
            assert not [
                each for each in ("hid%20den", "hid den", "secret-1") if each in str(failed.value)
            ]
            assert len(str(failed.value).splitlines()) == 1
            with pytest.raises(CatalogError):
                tables.check()
            assert failed.value.__cause__ is None
            assert failed.value.__suppress_context__


def test_secrets_in_an_error_are_masked(properties):
    tables = IcebergTables(
        {**properties, "auth": {"oauth2": {"client_secret": "inner"}}, "token": "tok", "uri": "a:b"}
    )
    hidden = str(tables._in_words(ValueError("inner and tok\nmore")))
    assert hidden == "*** and ***"


def test_secrets_in_a_uri_and_in_the_text_of_a_request_are_masked(properties):
    uri = "postgresql+psycopg://db/ice?user=a&password=hunter%2022"
    tables = IcebergTables({**properties, "uri": uri, "credential": "me:a/b+c=="})
    for text in ("a:hunter%2022", "a:hunter 22", "a:a%2Fb%2Bc%3D%3D", "a:a/b+c=="):
        assert str(tables._in_words(ValueError(text))) == "a:***"


def test_a_missing_pyiceberg_is_an_error_that_says_how_to_install_it(monkeypatch, properties):
    monkeypatch.setattr(iceberg_catalog, "find_spec", lambda name: None)
    with pytest.raises(CatalogError, match=r"pip install 'airflow-hive-opt\[iceberg\]'"):
        IcebergTables(properties)
