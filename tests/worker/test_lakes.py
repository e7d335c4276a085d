"""Small tables of Iceberg and Delta, written by the libraries that read them, without Spark.

``tests/lakes`` has tables that Spark has written.
"""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, NestedField, StringType
from upath import UPath

from airflow_hive_opt.documents.small_tables import SmallTable
from airflow_hive_opt.metastores.statement_catalog import StatementCatalog
from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.statement.catalog import Column, Table
from airflow_hive_opt.worker.key_query import collect
from airflow_hive_opt.worker.lakes import delta, iceberg
from airflow_hive_opt.worker.lakes.catalog import StatementTables
from airflow_hive_opt.worker.settings import SESSION_CATALOG
from airflow_hive_opt.worker.tables import Tables
from airflow_hive_opt.worker.unanswered import Unanswered
from tests.worker.small_tables import BOUNDS, Known, key_source

ROWS = pa.table(
    {
        "k": pa.array([1, None, 3], pa.int32()),
        "Name": ["a", "é", None],
        "m": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(7, 2)),
        "d": pa.array([date(2024, 2, 29), None, date(1582, 10, 15)], pa.date32()),
        "b": [True, False, None],
    }
)
PLAIN = {tuple(row.values()) for row in ROWS.to_pylist()}
NAMES = ("k", "name", "m", "d", "b")
ICEBERG, DELTA = (
    "org.apache.iceberg.spark.SparkSessionCatalog",
    "org.apache.spark.sql.delta.catalog.DeltaCatalog",
)
OTHER = "org.apache.iceberg.spark.SparkCatalog"


def keys_of(lake, columns=NAMES, sql="SELECT DISTINCT {} FROM t AS `x`"):
    """The keys of a table that a statement calls ``t``."""
    known = Known()
    known.tables["t"] = lake.described
    source = key_source(
        sql.format(", ".join(f"`x`.`{column}`" for column in columns)),
        *(f"x.{column}" for column in columns),
    )
    found = collect(source, Tables(known, UPath, lake=lambda _: lake), BOUNDS, {})
    assert found.exact
    return set(found.rows)


@pytest.fixture
def catalog(tmp_path):
    found = InMemoryCatalog("c", warehouse=f"file://{tmp_path}/iceberg")
    found.create_namespace("db")
    return found


@pytest.fixture
def written(catalog):
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    return table


def read(table):
    return iceberg.at_metadata("c.db.t", table.metadata_location, UPath)


def test_the_worker_reads_the_rows_of_an_iceberg_table(written):
    found = read(written)
    assert keys_of(found) == PLAIN
    described = found.described
    types = ("int", "string", "decimal(7,2)", "date", "boolean")
    assert described.columns == tuple(map(Column, NAMES, types))
    assert (described.provider, described.clustered_by) == ("iceberg", ())
    assert 0 < described.total_bytes < 10_000
    assert f"file://{described.location.removeprefix('file://')}" == written.location()


def test_a_table_without_a_file_of_metadata_has_no_known_state(written):
    found = read(written)
    assert found.state().facts["metadata"] == written.metadata_location
    found.loaded.metadata_location = ""
    with pytest.raises(Unanswered, match="no metadata that can be compared"):
        found.state()


def test_two_states_of_a_table_in_one_run_are_refused():
    tables = Tables(Known(), UPath)
    for _ in range(2):
        tables.note(SmallTable("dw.days", (("/days", "a"),)))
    with pytest.raises(Unanswered, match="dw.days changes while the worker reads it"):
        tables.note(SmallTable("dw.days", (("/days", "b"),)))


def test_the_worker_counts_the_rows_of_an_iceberg_table(written):
    written.append(ROWS)
    sql = "SELECT DISTINCT {} FROM (SELECT count(*) AS n FROM t) AS `x`"
    assert keys_of(read(written), ["n"], sql) == {(6,)}


def test_rows_of_an_iceberg_table_are_those_of_the_snapshot_found_first(written):
    found = read(written)
    written.append(ROWS.slice(0, 1).set_column(0, "k", pa.array([77], pa.int32())))
    assert (77,) not in keys_of(found, ["k"])
    assert (77,) in keys_of(read(written), ["k"])


def test_deleted_rows_of_an_iceberg_table_give_no_keys(written):
    written.delete("k = 3")
    assert keys_of(read(written), ["k"]) == {(1,), (None,)}


def test_icebergs_partition_value_is_read_instead_of_the_value_in_the_data_file(catalog, tmp_path):
    """A file that was added may have other values of a partition column; Iceberg ignores them."""
    schema = Schema(
        NestedField(1, "p", IntegerType(), required=False),
        NestedField(2, "s", StringType(), required=False),
    )
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "p"))
    table = catalog.create_table("db.p", schema, partition_spec=spec)
    table.append(pa.table({"p": pa.array([1, 2], pa.int32()), "s": ["a", "b"]}))
    (task, _) = sorted(table.scan().plan_files(), key=lambda task: task.file.partition[0])
    path = task.file.file_path.removeprefix("file://")
    numbered = pq.read_schema(path)
    wrong = pa.table([pa.array([9], pa.int32()), pa.array(["a"])], schema=numbered)
    pq.write_table(wrong, path)
    assert keys_of(read(table), ["p", "s"]) == {(1, "a"), (2, "b")}


@pytest.mark.parametrize("compressed", [False, True])
def test_the_newest_metadata_file_is_read_if_the_hint_is_older(written, tmp_path, compressed):
    """The hint is written after the version, and may be an older one."""
    import gzip

    folder = tmp_path / "hadoop" / "db" / "t"
    (folder / "metadata").mkdir(parents=True)
    versions = [written.metadata_location]
    written.append(ROWS.slice(0, 1).set_column(0, "k", pa.array([77], pa.int32())))
    versions.append(written.metadata_location)
    for number, place in enumerate(versions, start=4):
        data = UPath(place).read_bytes()
        name = f"v{number}.gz.metadata.json" if compressed else f"v{number}.metadata.json"
        (folder / "metadata" / name).write_bytes(gzip.compress(data) if compressed else data)
    (folder / "metadata" / "version-hint.text").write_text("4")
    settings = {
        "spark.sql.catalog.lake": OTHER,
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(tmp_path / "hadoop"),
    }
    known = tables(settings)
    assert known.table("lake.db.t").provider == "iceberg"
    assert (77,) in keys_of(known.lake(known.table("lake.db.t")), ["k"])
    with pytest.raises(Unanswered, match="no version of lake.db.none"):
        known.table("lake.db.none")
    with pytest.raises(Unanswered, match="in two ways, differing in case"):
        known.table("lake.DB.t")


def test_unsupported_iceberg_tables_are_left_to_spark(catalog, written):
    empty = catalog.create_table("db.empty", ROWS.schema)
    with pytest.raises(Unanswered, match="has no snapshot"):
        keys_of(read(empty))
    both = catalog.create_table(
        "db.both", pa.schema([("Id", pa.int32()), ("id", pa.int32()), ("a", pa.int32())])
    )
    values = pa.array([1], pa.int32())
    both.append(pa.table([values, values, values], names=["Id", "id", "a"]))
    with pytest.raises(Unanswered, match="differ in case"):
        keys_of(read(both), ["id"])
    old = catalog.create_table("db.old", pa.schema([("d", pa.date32())]))
    old.append(pa.table({"d": pa.array([date(1582, 10, 14)])}))
    with pytest.raises(Unanswered, match="out of range"):
        keys_of(read(old), ["d"])
    found = read(written)
    with pytest.raises(Unanswered, match="more than 10 bytes"):
        found.read(["k"], 10)
    with pytest.raises(Unanswered, match="can't read file:///nowhere"):
        iceberg.at_metadata("t", "file:///nowhere/v1.metadata.json", UPath)
    for task in written.scan().plan_files():
        UPath(task.file.file_path).unlink()
    with pytest.raises(Unanswered, match="can't read"):
        keys_of(read(written))


def tables(settings, entries=()):
    """The tables of a statement; ``entries`` has those of the metastore with their storage."""
    own = {table.name: (table, storage) for table, storage in entries}
    metastore = SimpleNamespace(
        look_up=lambda names: None,
        table=lambda name: own[name][0] if name in own else None,
        storage=lambda table: own[table.name][1],
    )
    names = [name.removeprefix("spark.sql.catalog.") for name in settings]
    catalogs = {name for name in names if "." not in name}
    return StatementTables(
        StatementCatalog(metastore, catalogs=catalogs), metastore, settings, UPath
    )


def entry(written, provider="iceberg"):
    table = Table("default.t", (), location=written.location(), provider=provider)
    parameters = {"metadata_location": written.metadata_location}
    return table, Storage(written.location(), "", parameters=parameters)


def test_an_iceberg_table_is_found_by_its_metastore_entry(written):
    known = tables({SESSION_CATALOG: ICEBERG}, [entry(written)])
    for name in ("t", "default.T", "spark_catalog.default.t"):
        table = known.table(name)
        assert (table.name, keys_of(known.lake(table))) == ("spark_catalog.default.t", PLAIN)
    settings = {"spark.sql.catalog.hms": OTHER, "spark.hadoop.hive.metastore.uris": "thrift://a:1"}
    for uri in ({}, {"spark.sql.catalog.hms.uri": "thrift://a:1"}):
        known = tables({**settings, **uri}, [entry(written)])
        assert keys_of(known.lake(known.table("hms.default.t"))) == PLAIN


@pytest.mark.parametrize(
    ("settings", "name", "reason"),
    [
        ({}, "t", "is a table of iceberg, and"),
        ({SESSION_CATALOG: DELTA}, "t", "is a table of iceberg, and"),
        ({"catalog.hms": OTHER, "catalog.hms.uri": "thrift://b:1"}, "hms.default.t", "only Spark"),
        ({"catalog.hms": OTHER, "catalog.hms.x": "y"}, "hms.default.t", "only Spark"),
        ({"catalog.hms": OTHER}, "hms.default.none", "no Iceberg table of the metastore"),
        ({"catalog.hms": OTHER}, "hms.a.b.t", "only Spark"),
        ({"catalog.hms": OTHER, "catalog.hms.type": "jdbc"}, "hms.default.t", "only Spark"),
        ({"catalog.hms": OTHER, "catalog.hms.catalog-impl": "x.Y"}, "hms.default.t", "only Spark"),
        ({"catalog.hms": "x.Y"}, "hms.default.t", "only Spark"),
        ({"catalog.hms": OTHER, "spark.wap.branch": "b"}, "hms.default.t", "spark.wap"),
        ({SESSION_CATALOG: ICEBERG, "spark.wap.id": "b"}, "t", "spark.wap"),
        (
            {
                "catalog.r": OTHER,
                "catalog.r.type": "rest",
                "catalog.r.uri": "http://127.0.0.1:1",
                "catalog.r.token": "secret",
            },
            "r.default.t",
            "the catalog r does not give r.default.t: ConnectionError",
        ),
    ],
)
def test_tables_of_catalogs_that_only_spark_can_open_are_left_to_spark(
    written, settings, name, reason
):
    full = {
        name if name.startswith("spark") else f"spark.sql.{name}": text
        for name, text in settings.items()
    }
    with pytest.raises(Unanswered, match=reason) as raised:
        tables(full, [entry(written)]).table(name)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("settings", [{}, {SESSION_CATALOG: ICEBERG}])
def test_an_entry_of_hudi(written, settings):
    with pytest.raises(Unanswered, match="is a table of hudi, a format that the worker does not"):
        tables(settings, [entry(written, "hudi")]).table("t")


@pytest.mark.parametrize("missing", ["pyiceberg", "deltalake"])
def test_a_table_whose_library_is_not_installed_is_left_to_spark(written, monkeypatch, missing):
    from airflow_hive_opt.worker.lakes import catalog

    monkeypatch.setattr(catalog, "find_spec", lambda name: None if name == missing else name)
    provider, session = ("iceberg", ICEBERG) if missing == "pyiceberg" else ("delta", DELTA)
    with pytest.raises(Unanswered, match=f"{missing} is not installed"):
        tables({SESSION_CATALOG: session}, [entry(written, provider)]).table("t")


def delta_keys(folder, columns=NAMES):
    return keys_of(delta.in_folder("default.t", str(folder), UPath), columns)


@pytest.mark.parametrize("by", [[], ["Name"], ["k"], ["b", "d"]])
def test_the_worker_reads_the_rows_of_a_delta_table(tmp_path, by):
    for part in (ROWS.slice(0, 2), ROWS.slice(2)):
        write_deltalake(tmp_path / "t", part, partition_by=by, mode="append")
    found = delta.in_folder("default.t", str(tmp_path / "t"), UPath)
    assert keys_of(found) == PLAIN
    for name in NAMES:
        assert keys_of(found, [name]) == {(row[NAMES.index(name)],) for row in PLAIN}
    described = found.described
    assert described.clustered_by == tuple(name.lower() for name in by)
    assert [column.name for column in described.columns] == list(NAMES)
    assert (described.partition_columns, described.provider) == ((), "delta")
    (place, _) = found.read(["k"], 10**6).rows.folders[0]
    assert place == f"{tmp_path}/t/_delta_log"


def test_a_delta_table_is_found_by_its_metastore_entry(tmp_path):
    write_deltalake(tmp_path / "t", ROWS)
    table = Table("default.t", (), location=str(tmp_path / "t"), provider="delta")
    known = tables({SESSION_CATALOG: DELTA}, [(table, None)])
    assert keys_of(known.lake(known.table("t"))) == PLAIN


def test_delta_partitions_with_special_characters_are_read(tmp_path):
    texts = ["a b", "x/y", "p%q", "é", "a=b", 'd"q', "o'k", "", None]
    rows = pa.table({"k": pa.array(range(9), pa.int32()), "p": texts})
    write_deltalake(tmp_path / "t", rows, partition_by=["p"])
    expected = {(number, text or None) for number, text in enumerate(texts)}
    assert delta_keys(tmp_path / "t", ["k", "p"]) == expected


def test_removed_files_and_added_columns_of_a_delta_table_are_respected(tmp_path):
    place = tmp_path / "t"
    write_deltalake(place, ROWS.select(["k", "b"]))
    write_deltalake(place, ROWS.slice(2).select(["k", "b"]), mode="overwrite")
    more = pa.table({"k": pa.array([5], pa.int32()), "b": [True], "s": ["new"]})
    write_deltalake(place, more, mode="append", schema_mode="merge")
    assert delta_keys(place, ["k", "s"]) == {(3, None), (5, "new")}


def test_a_delta_log_is_read_from_its_checkpoint_and_without_gaps(tmp_path):
    from deltalake import DeltaTable

    place = tmp_path / "t"
    for number in range(4):
        rows = pa.table({"k": pa.array([number], pa.int32()), "s": ["x"]})
        write_deltalake(place, rows, mode="append", partition_by=["k"])
        if number == 2:
            DeltaTable(place).create_checkpoint()
            (place / "_delta_log" / f"{1:020}.json").unlink()  # needed by nothing
    assert delta_keys(place, ["k"]) == {(0,), (1,), (2,), (3,)}
    (place / "_delta_log" / f"{3:020}.json").rename(place / "_delta_log" / f"{4:020}.json")
    with pytest.raises(Unanswered, match="gaps"):
        delta_keys(place, ["k"])


def test_a_delta_log_without_its_first_files_is_left_to_spark(tmp_path):
    """Spark rejects it; deltalake would read the files since the commit with the schema."""
    for _ in range(3):
        write_deltalake(tmp_path / "t", ROWS, mode="append")
    log = tmp_path / "t" / "_delta_log"
    first, second = log / f"{0:020}.json", log / f"{1:020}.json"
    actions = [line for line in first.read_text().splitlines() if '"add"' not in line]
    second.write_text("\n".join([*actions, second.read_text()]))
    assert delta_keys(tmp_path / "t") == PLAIN
    first.unlink()
    with pytest.raises(Unanswered, match="gaps"):
        delta_keys(tmp_path / "t")


def _change(place, name, **fields):
    """Changes an action of the first commit."""
    log = place / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if name in action:
            action[name].update(fields)
    log.write_text("\n".join(map(json.dumps, actions)))


READER = {"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": []}
LEFT = {
    "columns have other names": (
        "metaData",
        {"configuration": {"delta.columnMapping.mode": "name"}},
    ),
    "commits outside": (
        "metaData",
        {"configuration": {"delta.coordinatedCommits.commitCoordinator-preview": "x"}},
    ),
    "the feature typeWidening": (
        "protocol",
        {**READER, "readerFeatures": ["typeWidening"], "writerFeatures": ["typeWidening"]},
    ),
    "a b": ("protocol", {**READER, "readerFeatures": ["a b"]}),
    "files outside": ("add", {"path": "file:///elsewhere/part-0.parquet"}),
    "can't read default.t": ("add", {"path": "none.parquet"}),
}


@pytest.mark.parametrize("reason", LEFT)
def test_unsupported_delta_tables_are_left_to_spark(tmp_path, reason):
    write_deltalake(tmp_path / "t", ROWS)
    name, fields = LEFT[reason]
    _change(tmp_path / "t", name, **fields)
    with pytest.raises(Unanswered, match=reason):
        delta_keys(tmp_path / "t")


def test_a_delta_table_with_deletion_vectors_is_left_to_spark(tmp_path):
    """Of a table whose rows may be deleted, and of which some are."""
    write_deltalake(tmp_path / "t", ROWS)
    feature = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    _change(tmp_path / "t", "protocol", **{**READER, **feature})
    assert delta_keys(tmp_path / "t") == PLAIN
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4}
    vector |= {"sizeInBytes": 40, "cardinality": 1}
    _change(tmp_path / "t", "add", deletionVector=vector)
    with pytest.raises(Unanswered, match="deletion vectors"):
        delta_keys(tmp_path / "t")


def test_a_folder_without_a_delta_log_is_left_to_spark(tmp_path):
    with pytest.raises(Unanswered, match="can't list"):
        delta_keys(tmp_path / "none")
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    with pytest.raises(Unanswered, match="gaps"):
        delta_keys(tmp_path / "t")
