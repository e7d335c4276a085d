"""The metastore calls of pruning are counted; they grow only with the matching partitions."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from upath import UPath

from airflow_hive_opt.metastores.json_file import JsonMetastore
from airflow_hive_opt.metastores.metastore import MetastoreError
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.metastores.thrift.connection import ThriftConnection
from airflow_hive_opt.metastores.thrift.metastore import ThriftMetastore
from airflow_hive_opt.metastores.thrift.security import PLAIN, Kerberos, Security
from airflow_hive_opt.pruning import scan_way
from airflow_hive_opt.pruning.scan_way import Way
from airflow_hive_opt.spark.catalog.remote_metastore import PartitionsOf, remote_of
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.spark.session import partition_lookup
from airflow_hive_opt.statement.catalog import JsonCatalog
from benchmarks.warehouse import register
from tests.services.processes import free_port
from tests.services.thrift import add_partitions, create_database, create_table, thrift_client
from tests.spark.answers import ask
from tests.spark.stages import job_of, join, prune

MANY = 20_000
ODD = ("a b", "o'k", 'd"q', "both'\"x", "back\\slash", "x/y", "p%q", "é", "[z]")
SQL = "SELECT f.id FROM cost.fact f JOIN cost.keys k ON f.p = k.p AND k.id < {}"


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS cost")
    frame = spark.range(30).selectExpr("CAST(id AS INT) id", "concat('p', id) p", "id % 3 AS n")
    frame.coalesce(1).write.partitionBy("p").saveAsTable("cost.fact")
    frame.coalesce(1).write.saveAsTable("cost.keys")
    frame.selectExpr("id", "n", "p AS P").coalesce(1).write.partitionBy("n", "P").saveAsTable(
        "cost.two"
    )
    rows = [(number, value) for number, value in enumerate([*ODD, *map(str, range(20)), None])]
    odd = spark.createDataFrame(rows, "id int, p string")
    odd.coalesce(1).write.partitionBy("p").saveAsTable("cost.odd")
    odd.coalesce(1).write.saveAsTable("cost.odd_keys")
    yield
    spark.sql("DROP DATABASE cost CASCADE")


@pytest.fixture(scope="module")
def remote(metastore_service, postgres_server, tmp_path_factory):
    """A remote metastore whose ``cost.fact`` has very many partitions, and the other tables."""
    folder = tmp_path_factory.mktemp("cost")
    with thrift_client(metastore_service) as client:
        create_database(client, "cost", str(folder))
        for name, keys in (
            ("fact", [("p", "string")]),
            ("two", [("n", "bigint"), ("p", "string")]),
            ("odd", [("p", "string")]),
        ):
            create_table(client, f"cost.{name}", [("id", "int")], keys, f"file:{folder}/{name}")
        for name, rows in (
            ("two", [(str(number % 3), f"p{number}") for number in range(30)]),
            ("odd", [*((text,) for text in ODD), ("__HIVE_DEFAULT_PARTITION__",)]),
        ):
            parts = [(row, f"file:{folder}/{name}/{at}", {}) for at, row in enumerate(rows)]
            add_partitions(client, f"cost.{name}", [("id", "int")], parts)
    values = [f"p{number}" for number in range(MANY)]
    register(postgres_server, "cost.fact", "p", f"file:{folder}/fact", values, 77)
    return metastore_service


@contextmanager
def hadoop_settings(spark, **settings):
    """What Spark's client of the metastore was made of, as if it had been this."""
    conf = spark._jsparkSession.sharedState().hadoopConf()
    before = {name: conf.get(name) for name in settings}
    for name, value in settings.items():
        conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            conf.set(name, old) if old else conf.unset(name)


@pytest.fixture
def asked(monkeypatch):
    """The methods that are called over Thrift."""
    methods = []
    real = ThriftConnection.call

    def call(self, method, *arguments):
        methods.append(method)
        return real(self, method, *arguments)

    monkeypatch.setattr(ThriftConnection, "call", call)
    return methods


def test_few_of_very_many_partitions_are_fetched_by_name_over_thrift(
    spark, remote, tmp_path, asked
):
    with hadoop_settings(spark, **{"hive.metastore.uris": remote.uri}):
        report = prune(spark, job_of(SQL.format(10)), UPath(tmp_path) / "1.json")
    (target,) = report.descriptor.targets
    assert (target.kept, target.total) == (10, MANY)
    assert all(part.location and part.bytes == 77 for part in target.partitions)
    assert asked[1:] == ["get_num_partitions_by_filter", "get_partitions_by_names"]
    assert report.work["local task"].partitions_fetched == 10


def test_partitions_of_each_reader_of_a_cte_are_fetched_over_thrift(spark, remote, tmp_path, asked):
    sql = (
        "WITH t AS (SELECT f.id, k.id AS number FROM cost.fact f JOIN cost.keys k ON f.p = k.p) "
        "SELECT id FROM t WHERE number < 10 UNION ALL SELECT id FROM t WHERE number >= 25"
    )
    with hadoop_settings(spark, **{"hive.metastore.uris": remote.uri}):
        report = prune(spark, job_of(sql), UPath(tmp_path) / "1.json")
    (target,) = report.descriptor.targets
    wanted = {(f"p{number}",) for number in range(30) if number < 10 or number >= 25}
    assert {part.values for part in target.partitions} == wanted
    assert all(part.location and part.bytes == 77 for part in target.partitions)
    assert report.work["local task"].partitions_fetched == 15


def test_for_few_partitions_all_names_are_listed_over_thrift(spark, remote, tmp_path, asked):
    sql = "SELECT t.id FROM cost.two t JOIN cost.keys k ON t.p = k.p AND k.id < 10"
    with hadoop_settings(spark, **{"hive.metastore.uris": remote.uri}):
        report = prune(spark, job_of(sql), UPath(tmp_path) / "1.json")
    (target,) = report.descriptor.targets
    assert sorted(part.values for part in target.partitions) == [
        (str(number % 3), f"p{number}") for number in sorted(range(10), key=lambda n: (n % 3, n))
    ]
    assert asked[1:] == ["get_num_partitions_by_filter", "get_partition_names"]
    assert report.work["local task"].partitions_fetched == 0


def test_conditions_beside_the_keys_are_evaluated_without_metastore_calls(
    spark, remote, tmp_path, asked
):
    sql = SQL.format(10) + " WHERE length(f.p) = 2 AND f.p <> :but"
    request = job_of(sql, parameters={"but": "p3"})
    with hadoop_settings(spark, **{"hive.metastore.uris": remote.uri}):
        report = prune(spark, request, UPath(tmp_path) / "1.json")
    (target,) = report.descriptor.targets
    assert sorted(part.values for part in target.partitions) == [
        (f"p{number}",) for number in range(10) if number != 3
    ]
    assert target.filter.endswith("AND (length(f.p) = 2) AND (f.p <> :but)")
    assert "get_partition_names" not in asked


def test_a_condition_that_fails_is_left_out_of_the_filter(spark, tmp_path):
    sql = SQL.format(10) + " WHERE 1 / (length(f.p) - 2) > 0"
    report = prune(spark, job_of(sql), UPath(tmp_path) / "1.json")
    (target,) = report.descriptor.targets
    assert (target.kept, target.filter) == (10, None)


def test_spark_looks_up_partitions_if_the_thrift_server_does_not_answer(spark, tmp_path, caplog):
    uri = f"thrift://127.0.0.1:{free_port()}"
    with hadoop_settings(spark, **{"hive.metastore.uris": uri}), caplog.at_level("INFO"):
        report = prune(spark, job_of(SQL.format(10)), UPath(tmp_path) / "1.json")
    assert report.descriptor.targets[0].total == 30
    assert "partitions are looked up through Spark: no answer" in caplog.text


def test_a_metastore_that_fails_leaves_the_scan_whole(spark, remote, tmp_path, monkeypatch):
    def fails(*_):
        raise MetastoreError("it went away")

    monkeypatch.setattr(ThriftMetastore, "partition_count", fails)
    with hadoop_settings(spark, **{"hive.metastore.uris": remote.uri}):
        report = prune(spark, job_of(SQL.format(10)), UPath(tmp_path) / "1.json")
    assert [found.reason for found in report.descriptor.decisions] == ["KEY_SOURCE_FAILED"]


def test_a_metastore_that_fails_for_one_scan_is_not_called_for_the_next(
    spark, remote, tmp_path, monkeypatch
):
    calls = []

    def fails(*_):
        calls.append(1)
        raise MetastoreError("it went away")

    monkeypatch.setattr(PartitionsOf, "partition_count", fails)
    both = f"{SQL.format(10)} UNION ALL {SQL.format(11)}"
    with hadoop_settings(spark, **{"hive.metastore.uris": remote.uri}):
        report = prune(spark, job_of(both), UPath(tmp_path) / "1.json")
    assert [found.reason for found in report.descriptor.decisions] == ["KEY_SOURCE_FAILED"] * 2
    assert len(calls) == 1


def test_spark_calls_a_metastore_that_is_embedded_or_not_supported(spark, asked):
    assert remote_of(spark) is None
    uris = {"hive.metastore.uris": "thrift://m:9083"}
    with hadoop_settings(spark, **uris):
        assert remote_of(spark) == ("thrift://m:9083", PLAIN)
        transport = "hive.metastore.thrift.framed.transport.enabled"
        for name in (transport, "hive.metastore.use.SSL"):
            with hadoop_settings(spark, **{name: "true"}):
                assert remote_of(spark) is None
        principal = {"hive.metastore.kerberos.principal": "hive/_HOST@R"}
        with hadoop_settings(spark, **{"hive.metastore.sasl.enabled": "true"}, **principal):
            assert remote_of(spark) == ("thrift://m:9083", Security(Kerberos("hive/_HOST@R")))
    catalog = SparkCatalog(spark)
    with PartitionsOf(spark, catalog) as metastore:
        fact = catalog.table("cost.fact")
        metastore.prefetch([fact])
        assert metastore.partition_count(fact) == 30
    assert asked == []


def test_a_run_on_the_embedded_metastore_makes_few_calls(spark, tmp_path):
    request, path = job_of(SQL.format(10)), UPath(tmp_path) / "1.json"
    spark.sql("REFRESH TABLE cost.fact")
    pruned = prune(spark, request, path, hand_over=False)
    result = join(spark, request, pruned, path)
    before = SparkCatalog(spark).work()
    spark.sql("REFRESH TABLE cost.fact")
    spark.sql(request.sql).collect()
    plain = (SparkCatalog(spark).work() - before).metastore_calls
    work = result.report.work
    assert work["local task"].metastore_calls == 4  # both tables in one call
    assert work["map join"].metastore_calls <= plain
    assert work["map join"].partitions_fetched == 10


def json_metastore(*names):
    documents = [
        {
            "name": "cost.two",
            "columns": [["id", "int"]],
            "partition_columns": [["n", "bigint"], ["p", "string"]],
            "partitions": [{"values": [str(at % 3), f"p{at}"]} for at in range(30)],
        },
        {
            "name": "cost.odd",
            "columns": [["id", "int"]],
            "partition_columns": [["p", "string"]],
            "partitions": [{"values": [text]} for text in (*ODD, "__HIVE_DEFAULT_PARTITION__")],
        },
        {"name": "cost.fact", "columns": [], "partition_columns": [["p", "string"]]},
    ]
    return JsonMetastore(JsonCatalog.of_documents(documents))


@pytest.fixture(params=["spark", "thrift", "json"])
def metastore(request):
    """Each client of the protocol, over the same partitions."""
    if request.param == "spark":
        yield SparkCatalog(request.getfixturevalue("spark"))
    elif request.param == "thrift":
        with ThriftMetastore(request.getfixturevalue("remote").uri) as client:
            yield client
    else:
        yield json_metastore()


def values(partitions):
    return {part.values for part in partitions}


def test_every_metastore_returns_the_same_partitions(metastore):
    two = metastore.table("cost.two")
    total = metastore.partition_count(two)
    assert (total, len(metastore.partition_names(two))) == (30, 30)
    keys = [
        ((0,), frozenset({(1,), (5,)})),
        ((1,), frozenset((f"p{number}",) for number in range(12))),
    ]
    wanted = {("1", f"p{number}") for number in range(12) if number % 3 == 1}
    found = metastore.partitions_by_keys(two, keys, total)
    assert values(found) == wanted
    assert len(found) == len(wanted)
    gone = [Partition(("1", "p0")), Partition(("9", "none"))]
    assert values(metastore.partitions_by_names(two, [*found, *gone])) == wanted
    assert metastore.existing(two, [*found, *gone]) == wanted
    assert metastore.partitions_by_keys(two, [((0,), frozenset())], total) == []
    odd = metastore.table("cost.odd")
    for text in ODD:
        assert values(metastore.partitions_by_keys(odd, [((0,), frozenset({(text,)}))], 10)) == {
            (text,)
        }
    null = Partition((None,))
    assert values(metastore.partitions_by_names(odd, [null])) == {(None,)}
    assert metastore.table("cost.nothing") is None
    assert metastore.table("nowhere.fact") is None


def test_a_session_that_is_not_active_uses_its_own_settings(spark):
    session = spark.newSession()
    spark.sql("SELECT 1").collect()
    catalog = SparkCatalog(session)
    odd = catalog.table("cost.odd")
    before = catalog.work()
    assert len(catalog.partitions_by_names(odd, [Partition((None,)), Partition(("it's",))])) == 1
    assert (catalog.work() - before).partitions_fetched == 1
    assert spark._jvm.SparkSession.getActiveSession().get().equals(spark._jsparkSession)


def test_a_catalog_file_without_partitions_is_an_error_that_says_so():
    metastore = json_metastore()
    with pytest.raises(MetastoreError, match=r'of cost.fact: add "partitions"'):
        metastore.partition_count(metastore.table("cost.fact"))


@pytest.mark.parametrize(
    "condition",
    ["k.id < 9", "k.id IN (1, 3, 4) OR k.p IS NULL"],
)
def test_values_that_a_filter_can_not_contain_are_fetched_by_name(spark, tmp_path, condition):
    sql = f"SELECT o.id FROM cost.odd o JOIN cost.odd_keys k ON o.p <=> k.p AND ({condition})"
    spark.sql("REFRESH TABLE cost.odd")
    answer = ask(spark, tmp_path, sql)
    assert answer.partitions_fetched == answer.target.kept < 10


def test_long_lists_of_several_columns_fetch_only_listed_partitions(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(scan_way, "VALUES_A_SCAN", 10)
    sql = "SELECT t.id FROM cost.two t JOIN cost.keys k ON t.n = k.n AND t.P = k.p AND k.id < 25"
    spark.sql("REFRESH TABLE cost.two")
    answer = ask(spark, tmp_path, sql)
    assert answer.partitions_fetched == answer.target.kept == 25


def test_a_list_of_most_partitions_fetches_all_and_lists_files_of_its_own(
    spark, tmp_path, monkeypatch
):
    monkeypatch.setattr(scan_way, "_FEW", 10)
    monkeypatch.setattr(scan_way, "VALUES_A_SCAN", 10)
    spark.sql("REFRESH TABLE cost.fact")
    request, path = job_of(SQL.format(20)), UPath(tmp_path) / "1.json"
    pruned = prune(spark, request, path)
    result = join(spark, request, pruned, path)
    assert [each["way"] for each in result.report.summary()["decisions"]] == ["whole"]
    work = result.report.work["map join"]
    assert (work.partitions_fetched, work.files_listed) == (30, 20)


def test_a_list_of_nearly_all_of_many_partitions_is_not_used(spark, tmp_path, monkeypatch):
    assert ask(spark, tmp_path, SQL.format(29)).target.kept == 29
    monkeypatch.setattr(scan_way, "_FEW", 10)
    answer = ask(spark, tmp_path, SQL.format(29))
    assert answer.reasons == {"f": "MOST_PARTITIONS_MATCH"}


def test_lookup_settings_of_the_session_are_restored(spark, tmp_path):
    names = (
        partition_lookup.IN_SET_THRESHOLD,
        partition_lookup.FAST_FALLBACK,
        partition_lookup.FALLBACK_ON_EXCEPTION,
        partition_lookup.LISTING_PARALLELISM,
        partition_lookup.LISTING_THRESHOLD,
    )
    session = spark.newSession()
    conf = session._jsparkSession.sessionState().conf()
    session.conf.set(partition_lookup.FAST_FALLBACK, "false")
    before = {name: (conf.contains(name), session.conf.get(name)) for name in names}
    places = {"file:/warehouse/fact"}
    with (
        pytest.raises(RuntimeError, match="stop"),
        partition_lookup.scanning(session, {Way.NAMES}, places),
    ):
        assert session.conf.get(partition_lookup.FAST_FALLBACK) == "true"
        assert int(session.conf.get(partition_lookup.LISTING_PARALLELISM)) < 100
        assert int(session.conf.get(partition_lookup.LISTING_THRESHOLD)) > 100
        raise RuntimeError("stop")
    assert {name: (conf.contains(name), session.conf.get(name)) for name in names} == before


def test_listing_settings_that_the_user_sets_are_kept(spark):
    session = spark.newSession()
    session.conf.set(partition_lookup.LISTING_PARALLELISM, "77")
    session.conf.set(partition_lookup.LISTING_THRESHOLD, "7")
    with partition_lookup.scanning(session, [], {"file:/warehouse/fact"}):
        assert session.conf.get(partition_lookup.LISTING_PARALLELISM) == "77"
        assert session.conf.get(partition_lookup.LISTING_THRESHOLD) == "7"
        assert session.conf.get(partition_lookup.FAST_FALLBACK) == "false"


@pytest.mark.parametrize("place", ["s3a://bucket/fact", "hdfs://name/fact", None])
def test_remote_directories_are_listed_in_parallel(spark, place):
    before = spark.conf.get(partition_lookup.LISTING_THRESHOLD)
    with partition_lookup.scanning(spark, [], {"file:/warehouse/other", place}):
        assert spark.conf.get(partition_lookup.LISTING_THRESHOLD) == before


def test_the_tables_of_a_statement_are_fetched_in_one_call(spark):
    spark.sql("CREATE OR REPLACE VIEW cost.seen AS SELECT id, p FROM cost.keys")
    names = ("cost.fact", "cost.keys", "cost.two", "cost.seen", "cost.missing")

    def reading(names):
        return " UNION ".join(f"SELECT 1 FROM {name}" for name in names)

    def looked_up(together):
        catalog, before = SparkCatalog(spark), SparkCatalog(spark).work()
        if together:
            catalog.look_up_together(reading(names))
        fetched = (catalog.work() - before).metastore_calls
        return [catalog.table(name) for name in names], fetched

    alone, _ = looked_up(together=False)
    together, fetched = looked_up(together=True)
    assert together == alone
    assert together[-1] is None
    assert fetched == 1
    catalog, before = SparkCatalog(spark), SparkCatalog(spark).work()
    catalog.look_up_together(reading(names))
    for name in ("cost.fact", "cost.two"):  # a table without partitions has its size measured
        assert catalog.table(name) is not None
    assert (catalog.work() - before).metastore_calls == 1
    catalog.look_up_together(reading(["nothing.here", "nothing.there"]))
    assert catalog.table("nothing.here") is None
