"""Airflow's own SQL operators, checks and sensors on a ``hive_opt`` connection, on real Spark."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from decimal import Decimal
from types import SimpleNamespace

import pytest
from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    AirflowTaskTimeout,
    BaseHook,
)
from airflow.providers.common.sql.hooks.handlers import fetch_one_handler
from airflow.providers.common.sql.operators.sql import (
    BranchSQLOperator,
    SQLCheckOperator,
    SQLColumnCheckOperator,
    SQLExecuteQueryOperator,
    SQLTableCheckOperator,
    SQLThresholdCheckOperator,
    SQLValueCheckOperator,
)
from airflow.providers.common.sql.sensors.sql import SqlSensor

from airflow_hive_opt.documents.descriptor import load
from airflow_hive_opt.hooks.pruned_sql import PrunedSqlHook
from airflow_hive_opt.hooks.sql_connection import SqlConnection
from airflow_hive_opt.provider.airflow_compat import ObjectStoragePath
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from tests.services.processes import HOST

JOIN = "FROM fact f JOIN few k ON f.p = k.p"
SQL = f"SELECT f.id, f.price, f.p {JOIN} ORDER BY f.id"
PARTITIONS = 40
# It generates rows, and gathers none.
FOREVER = "SELECT count(*) AS n FROM range(0, 100000000000, 1, 8) r, fact WHERE hash(r.id) <> 7"


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE hooked")
    frame = spark.range(PARTITIONS).selectExpr(
        "CAST(id AS INT) id", "CAST(id AS DECIMAL(9, 2)) price", "CAST(id AS INT) p"
    )
    frame.coalesce(1).write.partitionBy("p").saveAsTable("hooked.fact")
    spark.sql("CREATE TABLE hooked.few AS SELECT id p FROM range(3, 6)")
    for name in ("result", "other"):
        spark.sql(f"CREATE TABLE hooked.{name} (id INT, p INT) STORED AS PARQUET")
    yield
    spark.sql("DROP DATABASE hooked CASCADE")


@pytest.fixture(autouse=True)
def connection(monkeypatch, tmp_path):
    """Makes the connection ``pruned``; its options may be replaced."""

    def connect(conn_type="hive_opt", schema="hooked", **extra):
        extra = {"descriptor_path": str(tmp_path), **extra}
        document = {"conn_type": conn_type, "schema": schema, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_PRUNED", json.dumps(document))

    connect()
    return connect


@pytest.fixture
def task(monkeypatch):
    """A task instance that runs; what it pushes."""
    pushed = {}
    instance = SimpleNamespace(
        dag_id="d", run_id="r", task_id="t", map_index=-1, try_number=1, pushed=pushed
    )
    instance.xcom_push = lambda key, value: pushed.update({key: value})
    monkeypatch.setattr(
        "airflow_hive_opt.hooks.sql_statements.get_current_context", lambda: {"ti": instance}
    )
    return instance


def hook(**options):
    return BaseHook.get_connection("pruned").get_hook(hook_params=options)


def query(sql=SQL, **options):
    return SQLExecuteQueryOperator(task_id="t", conn_id="pruned", sql=sql, **options)


def decided(operator_or_hook):
    """The partitions kept of all, of each statement that had any."""
    of_operator = getattr(operator_or_hook, "get_db_hook", None)
    found = of_operator() if of_operator else operator_or_hook
    summaries = [each.summary for each in found._statements.finished if each.summary]
    return [(found["kept"], found["total"]) for found in summaries if found["total"]]


def plain(spark, sql):
    spark.catalog.setCurrentDatabase("hooked")
    return [tuple(row) for row in spark.sql(sql).collect()]


def fetched(spark, work):
    before = SparkCatalog(spark).work().partitions_fetched
    work()
    return SparkCatalog(spark).work().partitions_fetched - before


def test_the_connection_gives_the_hook(task):
    found = hook(max_rows=3)
    assert type(found) is PrunedSqlHook
    assert (found.options.max_rows, found.connection.schema) == (3, "hooked")


def test_an_operator_returns_the_rows_of_plain_spark_from_few_partitions(spark, task, capsys):
    operator = query()
    rows = []
    scanned = fetched(spark, lambda: rows.extend(operator.execute({})))
    listed = plain(spark, "SELECT id, price, p FROM fact WHERE p IN (3, 4, 5) ORDER BY id")
    assert rows == plain(spark, SQL) == listed
    assert rows[0] == (3, Decimal("3.00"), 3)
    assert {type(row) for row in rows} == {tuple}
    assert decided(operator) == [(3, PARTITIONS)]
    assert scanned == 3
    columns = [each[:2] for each in operator.get_db_hook().last_description]
    assert columns == [("id", "int"), ("price", "decimal(9,2)"), ("p", "int")]
    log = capsys.readouterr().out
    assert "kept 3 of 40 partitions (92.5 % pruned): fact.p by 3 keys of few" in log


def test_the_page_of_the_task_shows_its_first_statement_that_reads_a_table(spark, task, tmp_path):
    query(["SET spark.sql.shuffle.partitions=2", SQL, SQL]).execute({})
    assert task.pushed["hive_opt_descriptor"] == str(
        ObjectStoragePath(str(tmp_path)) / "d/r/t/-1/1.json"
    )
    assert task.pushed["hive_opt_summary"]["kept"] == 3
    assert task.pushed["hive_opt_figures"]["kept"] == 3
    (target,) = load(ObjectStoragePath(task.pushed["hive_opt_descriptor"])).targets
    assert len(target.partitions) == 3
    written = {path.name for path in (tmp_path / "d/r/t/-1").iterdir()}
    assert {"1.1.json", "1.json", "1.report.json", "1.3.json", "1.3.report.json"} <= written


def test_a_statement_outside_a_task_is_pruned_too(spark):
    found = hook()
    assert found.get_records(SQL) == plain(spark, SQL)
    assert decided(found) == [(3, PARTITIONS)]


def test_get_first_reads_no_more_than_it_returns(spark, task, connection):
    connection(max_rows=1)
    found = hook()
    assert found.get_first(SQL) == (3, Decimal("3.00"), 3)
    assert found.get_first("SELECT * FROM fact WHERE p = 99") is None
    assert query(handler=fetch_one_handler).execute({})[0] == 3


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_data_frame_has_the_rows_and_types_of_spark(spark, task, kind):
    pytest.importorskip(kind)
    found = hook()
    sql = f"SELECT f.id, f.price {JOIN} AND k.p >= :least ORDER BY f.id"
    frame = found.get_df(sql, {"least": 4}, df_type=kind)
    ids = list(frame["id"])
    assert ids == [4, 5]
    assert [float(price) for price in frame["price"]] == [4, 5]
    assert decided(found) == [(2, PARTITIONS)]
    chunks = list(found.get_df_by_chunks(SQL, chunksize=2, df_type=kind))
    assert [len(chunk) for chunk in chunks] == [2, 1]
    with pytest.raises(AirflowFailException, match="more than 2 rows"):
        hook(max_rows=2).get_df(SQL, df_type=kind)
    with pytest.raises(AirflowFailException, match="line 1, column 15: there is no table nowhere"):
        hook().get_df("SELECT * FROM nowhere", df_type=kind)


def test_polars_has_spark_types_also_without_rows(spark, task):
    polars = pytest.importorskip("polars")
    frame = hook().get_df("SELECT * FROM fact WHERE p = 99", df_type="polars")
    assert frame.schema["price"] == polars.Decimal(9, 2)


def test_an_insert_writes_what_plain_spark_writes(spark, task):
    operator = query(f"INSERT OVERWRITE TABLE result SELECT f.id, f.p {JOIN}")
    assert operator.execute({}) is None
    assert decided(operator) == [(3, PARTITIONS)]
    assert sorted(plain(spark, "TABLE result")) == [(3, 3), (4, 4), (5, 5)]


def test_checks_of_common_sql_read_few_partitions(spark, task, monkeypatch):
    clause = "p IN (SELECT p FROM few)"
    column = SQLColumnCheckOperator(
        task_id="t",
        conn_id="pruned",
        table="fact",
        partition_clause=clause,
        column_mapping={"id": {"min": {"equal_to": 3}, "max": {"equal_to": 5}}},
    )
    column.execute({})
    assert decided(column) == [(6, 2 * PARTITIONS)]
    table = SQLTableCheckOperator(
        task_id="t",
        conn_id="pruned",
        table="fact",
        partition_clause=clause,
        checks={"count": {"check_statement": "COUNT(*) = 3"}},
    )
    table.execute({})
    assert decided(table) == [(3, PARTITIONS)]
    check = SQLCheckOperator(task_id="t", conn_id="pruned", sql=f"SELECT count(*) {JOIN}")
    check.execute({})
    assert decided(check) == [(3, PARTITIONS)]
    value = SQLValueCheckOperator(
        task_id="t", conn_id="pruned", sql=f"SELECT count(*) {JOIN}", pass_value=3
    )
    value.execute({})
    threshold = SQLThresholdCheckOperator(
        task_id="t",
        conn_id="pruned",
        sql=f"SELECT sum(f.id) {JOIN}",
        min_threshold=f"SELECT min(f.id) {JOIN}",
        max_threshold=100,
    )
    threshold.execute({})
    assert decided(threshold) == [(3, PARTITIONS)] * 2
    branch = BranchSQLOperator(
        task_id="t",
        conn_id="pruned",
        sql=f"SELECT count(*) > 2 {JOIN}",
        follow_task_ids_if_true=["many"],
        follow_task_ids_if_false=["few"],
    )
    monkeypatch.setattr(branch, "skip_all_except", lambda *_: None)  # needs Airflow's database
    branch.execute({"ti": None})
    assert branch.follow_branch == ["many"]
    assert decided(branch) == [(3, PARTITIONS)]
    wrong = SQLValueCheckOperator(
        task_id="t", conn_id="pruned", sql=f"SELECT count(*) {JOIN}", pass_value=4
    )
    with pytest.raises(AirflowException, match="Test failed"):
        wrong.execute({})


def test_a_sensor_waits_until_the_pruned_statement_finds_a_row(spark, task):
    sensor = SqlSensor(
        task_id="t",
        conn_id="pruned",
        sql=f"SELECT count(*) {JOIN} WHERE f.id = :wanted",
        parameters={"wanted": 5},
        hook_params={"on_no_prune": "fail"},
    )
    assert sensor.poke({}) is True
    sensor.parameters = {"wanted": 30}
    assert sensor.poke({}) is False


def test_statements_of_a_script_share_their_session(spark, task):
    script = """
        SET hive.mapjoin.smalltable.filesize=1; -- no table is small any more
        USE default;
        CREATE TEMPORARY VIEW mine AS SELECT p FROM hooked.few WHERE p < 5; /* ; */
        SELECT count(*) FROM hooked.fact f JOIN mine k ON f.p = k.p;
        SET hive.mapjoin.smalltable.filesize=25000000;
        SELECT f.id FROM hooked.fact f JOIN mine k ON f.p = k.p ORDER BY f.id;
    """
    found = hook()
    assert found.run(script, handler=lambda cursor: cursor.fetchall(), split_statements=True) == [
        (3,),
        (4,),
    ]
    reasons = [each.summary["reason"] for each in found._statements.finished if each.summary]
    assert (reasons[-3], reasons[-1]) == ("KEY_SOURCE_NOT_SMALL", "PRUNED")
    assert decided(found)[-1] == (2, PARTITIONS)
    assert found._statements.finished[2].sql.startswith("CREATE TEMPORARY VIEW mine")
    assert [each.database for each in found._statements.finished][:3] == [
        *["hooked"] * 2,
        "default",
    ]
    # and another call has another session
    with pytest.raises(AirflowFailException, match="mine"):
        found.get_records("SELECT * FROM mine")


def test_a_pruned_statement_leaves_its_session_as_it_was(spark, task):
    """Settings and views of the run itself must not reach the statements after it."""
    skeleton = f"SELECT f.id {JOIN.replace('f.p = k.p', 'f.p BETWEEN k.p AND k.p + 1')}"
    look = ["SET", "SHOW VIEWS", "SELECT current_catalog(), current_database()"]
    found = hook()
    write = f"INSERT OVERWRITE TABLE result SELECT f.id, f.p {JOIN}"
    script = [*look, SQL, skeleton, write, *look]
    rows = found.run(script, handler=lambda cursor: cursor.description and cursor.fetchall())
    assert rows[:3] == rows[-3:]
    assert rows[1] == []
    paths = [each.summary["decisions"][0]["path"] for each in found._statements.finished[3:6]]
    assert paths == ["fast", "skeleton", "fast"]


@pytest.mark.parametrize("sql", ["SELECT 1 a; SELECT 2 a", ["SELECT 1 a", "SELECT 2 a"]])
@pytest.mark.parametrize("return_last", [True, False])
def test_results_have_the_shape_of_common_sql(spark, task, sql, return_last):
    operator = query(sql, split_statements=isinstance(sql, str), return_last=return_last)
    last = isinstance(sql, str) and return_last
    assert operator.execute({}) == ([(2,)] if last else [[(1,)], [(2,)]])


def test_a_view_is_defined_by_the_statement_as_it_is_written(spark, task):
    """The view must not keep the partition list of the time of its definition."""
    found = hook()
    script = [
        f"CREATE TEMPORARY VIEW joined AS SELECT f.id {JOIN}",
        "INSERT INTO few VALUES (7)",
        "SELECT id FROM joined ORDER BY id",
    ]
    try:
        rows = found.run(script, handler=lambda cursor: cursor.description and cursor.fetchall())
        assert rows[-1] == [(3,), (4,), (5,), (7,)]
    finally:
        spark.sql("INSERT OVERWRITE TABLE hooked.few SELECT id FROM range(3, 6)")


def test_a_statement_that_can_t_be_planned_passes_through(spark, task):
    found = hook()
    assert found.get_records("SHOW TABLES LIKE 'few'") == [("hooked", "few", False)]
    sql = "SELECT id FROM IDENTIFIER('hooked.fact') WHERE p = 3"
    assert found.get_records(sql) == plain(spark, sql) == [(3,)]
    assert found._statements.finished[-1].summary["reason"] == "PASSED_THROUGH"


def test_structs_become_values_that_xcom_can_store(spark, task):
    sql = "SELECT named_struct('a', array(named_struct('b', 1))) s, map('k', 1) m, X'00' b"
    assert hook().get_records(sql) == [({"a": [{"b": 1}]}, {"k": 1}, b"\0")]
    others = "SELECT TIMESTAMP'2026-01-31 12:00:00' t, DATE'2026-01-31' d, 1.5BD n, NULL v"
    assert hook().get_records(others) == plain(spark, others)


def test_more_rows_than_max_rows_fail_unless_nobody_fetches_them(spark, task, connection):
    connection(max_rows=2)
    with pytest.raises(AirflowFailException, match="more than 2 rows, the limit of max_rows"):
        query().execute({})
    assert query(do_xcom_push=False).execute({}) is None
    assert hook().run(SQL, handler=lambda cursor: cursor.fetchmany(2))[1][0] == 4
    with pytest.raises(AirflowFailException, match="more than 2 rows"):
        hook().run(SQL, handler=lambda cursor: [list(cursor)])
    assert len(hook(max_rows=3).get_records(SQL)) == 3
    with pytest.raises(AirflowFailException, match="more than 2 rows"):
        hook().get_records("SHOW TABLES IN hooked")


def test_a_script_that_fails_says_what_has_run(spark, task):
    plain(spark, "TRUNCATE TABLE result")
    script = "\n".join(
        [
            "INSERT OVERWRITE TABLE result SELECT 1, 1;",
            "SELECT 1;",
            "SELECT id,",
            "  nope FROM fact;",
            "INSERT INTO result SELECT 2, 2;",
        ]
    )
    with pytest.raises(AirflowFailException) as error:
        query(script, split_statements=True).execute({})
    assert str(error.value) == (
        "statement 3 of 4: line 4, column 3: there is no column nope in fact "
        "(2 before it ran, 1 after it did not)"
    )
    assert plain(spark, "TABLE result") == [(1, 1)]


@pytest.mark.parametrize(
    ("first", "kind", "message"),
    [
        ("INSERT OVERWRITE TABLE result SELECT 1, 1", AirflowException, "0 after it did not)"),
        (
            "INSERT OVERWRITE TABLE result SELECT f.id, f.p FROM fact f JOIN few k ON f.p = k.p",
            AirflowException,
            "0 after it did not)",
        ),
        ("INSERT INTO result SELECT 1, 1", AirflowFailException, "would run statement 1 again"),
        (
            "INSERT OVERWRITE TABLE result SELECT id, p FROM same",
            AirflowFailException,
            "would run statement 1 again",
        ),
    ],
)
def test_a_retry_never_adds_rows_twice(spark, task, first, kind, message):
    spark.sql("CREATE OR REPLACE VIEW hooked.same AS SELECT id, p FROM hooked.other")
    with pytest.raises(AirflowException, match="statement 2 of 2") as error:
        query([first, "SELECT raise_error('on its data') FROM few"]).execute({})
    assert type(error.value) is kind
    assert message in str(error.value)


OVERWRITES = "INSERT OVERWRITE TABLE result SELECT 1, 1"
APPENDS = "INSERT INTO result SELECT 2, 2"


def raising(error):
    def raise_it(*_, **__):
        raise error

    return raise_it


@pytest.mark.parametrize(
    ("error", "first", "kind", "message"),
    [
        (AirflowTaskTimeout("late"), OVERWRITES, AirflowTaskTimeout, "^late$"),
        (
            AirflowTaskTimeout("late"),
            APPENDS,
            AirflowFailException,
            "2 of 2: .*Timeout: late .*again",
        ),
        (KeyboardInterrupt(), APPENDS, KeyboardInterrupt, None),
        (SystemExit(1), APPENDS, SystemExit, None),
        (ValueError("year 0"), OVERWRITES, AirflowException, r"2 of 2: ValueError: year 0 \(1 "),
        (ValueError("year 0"), APPENDS, AirflowFailException, "2 of 2: ValueError: .*again"),
    ],
)
def test_whatever_ends_a_script_no_retry_adds_rows_twice(
    spark, task, monkeypatch, error, first, kind, message
):
    """The second statement fails where Spark has ended, or where a timeout interrupts it."""
    from airflow_hive_opt.spark.session import session_conf

    plain(spark, "TRUNCATE TABLE result")
    answers = iter([session_conf.all_set, raising(error)])

    def all_set(session):
        return next(answers)(session)

    monkeypatch.setattr(session_conf, "all_set", all_set)
    with pytest.raises(kind, match=message) as raised:
        query([first, "SELECT 1"]).execute({})
    assert type(raised.value) is kind
    assert len(plain(spark, "TABLE result")) == 1


def test_a_statement_counts_as_soon_as_spark_has_run_it(spark, task):
    plain(spark, "TRUNCATE TABLE result")
    task.xcom_push = raising(ConnectionError("no API server"))
    with pytest.raises(AirflowFailException) as raised:
        query([f"INSERT INTO result SELECT f.id, f.p {JOIN}", "SELECT 1"]).execute({})
    assert str(raised.value) == (
        "statement 1 of 2: the statement has run, but then ConnectionError: no API server "
        "(0 before it ran, 1 after it did not). There is no retry: it would run statement 1 again"
    )
    assert len(plain(spark, "TABLE result")) == 3


def test_a_value_that_python_has_not_fails_with_one_message(spark, task, monkeypatch):
    """The zone of the worker is east of that of the session."""
    before = os.environ.get("TZ")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        sql = ["SET spark.sql.session.timeZone=UTC", "SELECT TIMESTAMP'9999-12-31 23:59:59' t"]
        with pytest.raises(AirflowException, match="statement 2 of 2: .*year 10000") as raised:
            query(sql).execute({})
        assert type(raised.value) is AirflowException
        with pytest.raises(AirflowException, match="year 10000"):
            hook(conf={"spark.sql.session.timeZone": "UTC"}).get_df(sql[1])
    finally:
        monkeypatch.delenv("TZ") if before is None else monkeypatch.setenv("TZ", before)
        time.tzset()


def test_without_a_handler_no_rows_are_fetched(spark, task, capsys):
    """Spark evaluates the first row alone: the query of a check fails on it."""
    operator = query("SELECT id FROM range(0, 100, 1, 1) WHERE id > 2", do_xcom_push=False)
    assert operator.execute({}) is None
    found = hook()
    seen = []
    rows_of = SqlConnection._rows_of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            SqlConnection, "_rows_of", lambda *each: seen.append(rows_of(*each)) or seen[-1]
        )
        found.run(SQL)
    assert [(rows.columns, rows.values, rows.is_all) for rows in seen] == [
        (("id", "price", "p"), [], False)
    ]
    with pytest.raises(AirflowException, match="wrong"):
        found.run("SELECT assert_true(max(id) < 3, 'wrong') FROM fact")


def test_gates_of_the_connection_hold_for_each_statement(spark, task, connection):
    connection(max_partitions=2)
    with pytest.raises(AirflowFailException, match="max_partitions is 2"):
        query().execute({})
    assert query().get_db_hook().options.max_partitions == 2
    connection(on_no_prune="fail")
    found = hook()
    found.run(["USE hooked", "SET spark.sql.shuffle.partitions=2", "SELECT 1", SQL])
    with pytest.raises(AirflowFailException, match="statement 2 of 2: no scan could be pruned"):
        found.run(["USE hooked", "SELECT count(*) FROM fact"])
    connection(on_empty="skip")
    with pytest.raises(AirflowSkipException):
        query(SQL.replace("ORDER", "AND k.p > 90 ORDER")).execute({})


def failing(cursor):
    return cursor.fetchall()[5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sql": "SELECT\n  x y z FROM fact"}, "line 2, column 7"),
        ({"sql": "SELECT * FROM few; SELECT 2"}, "one SQL statement is expected, not 2"),
        ({"sql": "  "}, "sql has no statement"),
        ({"sql": []}, "sql has no statement"),
        ({"sql": " ; -- nothing\n;", "split_statements": True}, "sql has no statement"),
        ({"sql": ["SELECT 1", ""]}, "statement 2 of 2: sql must be a statement, not ''"),
        ({"sql": "SELECT * FROM few WHERE p = :p"}, "the parameter :p has no value: add it to"),
        ({"sql": "SELECT :p", "parameters": [1]}, "parameters must be a dictionary with names"),
        ({"handler": failing}, "the handler failing fails: IndexError: list index out of range"),
        ({"hook_params": {"max_row": 1}}, "connection 'pruned': there is no option max_row"),
        ({"hook_params": {"max_rows": "all"}}, "max_rows must be a whole number, not 'all'"),
        ({"hook_params": {"on_empty": "no"}}, "connection 'pruned': on_empty"),
        ({"database": "nowhere"}, "the database 'nowhere' can't be used"),
        ({"hook_params": {"spark_conn_id": "none"}}, "there is no connection 'none'"),
        ({"hook_params": {"spark_conn_id": "cluster"}}, "which return no rows: SQL operators need"),
    ],
)
def test_bad_input_fails_without_retries_and_with_one_message(
    spark, task, monkeypatch, arguments, message
):
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", "spark://yarn")
    with pytest.raises(AirflowException) as error:
        query(**arguments).execute({})
    assert message in str(error.value)
    assert type(error.value) is (
        AirflowException if "handler" in arguments else AirflowFailException
    )


def test_a_connection_of_another_type_or_none_is_refused(task, connection):
    with pytest.raises(AirflowFailException, match="there is no connection 'missing'"):
        PrunedSqlHook("missing").get_records("SELECT 1")
    connection("postgres")
    with pytest.raises(AirflowFailException, match="its type is 'postgres', not 'hive_opt'"):
        PrunedSqlHook("pruned").get_records("SELECT 1")
    connection("hive_op")
    with pytest.raises(AirflowException, match='Unknown hook type "hive_op"'):
        query().execute({})


def test_a_connection_may_be_written_as_a_uri(spark, task, monkeypatch):
    uri = "hive-opt:///hooked?max_rows=2&hive_conf=%7B%22hive.map.aggr%22%3A%20%22false%22%7D"
    monkeypatch.setenv("AIRFLOW_CONN_PRUNED", uri)
    options = hook().options
    assert (options.max_rows, options.hive_conf) == (2, {"hive.map.aggr": "false"})


@pytest.mark.parametrize("option", ["conf", "hive_conf"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"spark.a.password": "hidden"',
            "a JSON object: Expecting ',' delimiter at line 1, column 30",
        ),
        ('["hidden"]', "a dictionary with names for keys, not a list"),
    ],
)
def test_an_option_that_is_no_object_is_not_in_the_message(task, connection, option, text, message):
    connection(**{option: text})
    with pytest.raises(AirflowFailException, match=f"{option} must be {message}") as error:
        hook().get_records("SELECT 1")
    assert "hidden" not in str(error.value)


def test_rows_of_another_system_are_not_inserted(task):
    with pytest.raises(AirflowFailException, match=r"INSERT \.\.\. SELECT"):
        hook().insert_rows("result", [(1, 2)])


def test_lineage_has_the_tables_and_partitions_of_all_statements(spark, task):
    pytest.importorskip("openlineage.client")
    operator = query(
        [
            SQL,
            SQL.replace("ORDER", "AND k.p = 5 ORDER"),
            f"INSERT INTO result SELECT f.id, f.p {JOIN}",
        ]
    )
    operator.execute({})
    found = operator.get_openlineage_facets_on_complete(None)
    assert [each.name for each in found.outputs] == ["hooked.result"]
    read = {each.name: each.inputFacets for each in found.inputs}
    assert set(read) == {"hooked.fact", "hooked.few"}
    partitions = read["hooked.fact"]["subset"].inputCondition.partitions
    assert [each.identifier for each in partitions] == ["p=3", "p=4", "p=5"]
    pruning = found.run_facets["hiveOpt_pruning"]
    assert (pruning.kept, pruning.total) == (7, 3 * PARTITIONS)
    assert found.job_facets["sql"].query.count(";\n") == 2


def test_lineage_has_no_temporary_views(spark, task):
    pytest.importorskip("openlineage.client")
    operator = query(
        [
            "CREATE TEMPORARY VIEW mine AS SELECT p FROM few",
            "CREATE GLOBAL TEMPORARY VIEW all_of_us AS SELECT p FROM mine",
            "INSERT OVERWRITE TABLE result SELECT f.id, f.p FROM fact f JOIN mine k ON f.p = k.p",
            "SELECT * FROM global_temp.all_of_us",
            "DROP VIEW global_temp.all_of_us",
        ]
    )
    operator.execute({})
    found = operator.get_openlineage_facets_on_complete(None)
    assert [each.name for each in found.outputs] == ["hooked.result"]
    assert {each.name for each in found.inputs} == {"hooked.fact", "hooked.few"}


@pytest.fixture
def server(connect_server, connection, monkeypatch):
    """A Spark Connect server with small tables, which the connection names."""
    from airflow_hive_opt.spark.session.connect import remote_session

    with remote_session(connect_server.url, {}) as session:
        session.sql("CREATE DATABASE hooked")
        frame = session.range(10).selectExpr("CAST(id AS INT) id", "CAST(id AS INT) p")
        frame.coalesce(1).write.partitionBy("p").saveAsTable("hooked.fact")
        session.sql("CREATE TABLE hooked.few AS SELECT id p FROM range(3, 6)")
        document = {
            "conn_type": "spark_connect",
            "host": HOST,
            "port": connect_server.port,
            "login": "me",
        }
        monkeypatch.setenv("AIRFLOW_CONN_SERVER", json.dumps(document))
        connection(spark_conn_id="server")
        yield connect_server
        session.sql("DROP DATABASE hooked CASCADE")


def test_a_spark_connect_server_runs_the_statements(server, task):
    sql = "SELECT f.id, f.p FROM fact f JOIN few3 k ON f.p = k.p ORDER BY f.id"
    script = f"SET hive.map.aggr=false; CREATE TEMPORARY VIEW few3 AS SELECT * FROM few; {sql}"
    operator = query(script, split_statements=True)
    assert operator.execute({}) == [(3, 3), (4, 4), (5, 5)]
    assert decided(operator) == [(3, 10)]


def test_a_task_that_is_stopped_stops_its_statement_on_the_server(server, task, tmp_path):
    """Airflow sends SIGTERM and has a handler for it, which must still be called."""
    stopped = []
    before = signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))

    def stop():
        until = time.monotonic() + 60
        while not list(tmp_path.rglob("1.json")) and time.monotonic() < until:
            time.sleep(0.1)  # until the statement begins
        os.kill(os.getpid(), signal.SIGTERM)

    stopping = threading.Thread(target=stop)
    try:
        stopping.start()
        with pytest.raises(AirflowException, match="statement 1 of 2: the task was stopped"):
            query([FOREVER, "SELECT 1"]).execute({})
        assert stopped == [True]
        assert signal.getsignal(signal.SIGTERM)(0, None) is None
        assert stopped == [True, True]  # Airflow's handler is back
    finally:
        stopping.join()
        signal.signal(signal.SIGTERM, before)
