"""Over Spark Connect too, a list is valid only for the names that its keys came from."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from airflow_hive_opt.documents.job import Job, Stages, Status
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.session.connect import remote_session
from tests.cases import slow_but
from tests.spark.handed_over import map_join_of

OF_KEYS = "SELECT f.id FROM remote.fact f JOIN remote.keys k ON f.p = k.p WHERE k.w = {call}"
ONE = "CREATE OR REPLACE {kind}FUNCTION {name}() RETURNS INT RETURN {value}"
WANTED = ONE.format(kind="", name="remote.wanted", value="{}")
BRIEF = ONE.format(kind="TEMPORARY ", name="brief", value="{}")
SEEN = "CREATE OR REPLACE TEMPORARY VIEW seen AS SELECT * FROM remote.keys WHERE w = {}"
OF_SEEN = "SELECT f.id FROM remote.fact f JOIN seen k ON f.p = k.p"


@pytest.fixture(scope="module", autouse=True)
def tables(connect_server):
    with remote_session(connect_server.url, {}) as session:
        for sql in (
            "CREATE DATABASE remote",
            "CREATE TABLE remote.fact (id INT) PARTITIONED BY (p INT) STORED AS PARQUET",
            "INSERT INTO remote.fact SELECT CAST(id AS INT), CAST(id % 10 AS INT) FROM range(40)",
            "CREATE TABLE remote.keys USING parquet AS "
            "SELECT CAST(id AS INT) AS p, CAST(id % 3 AS INT) AS w FROM range(10)",
        ):
            session.sql(sql)
        yield
        session.sql("DROP DATABASE remote CASCADE")


@pytest.fixture
def application(connect_server):
    """Makes sessions in which some statements have run."""
    with ExitStack() as sessions:

        def made(*statements):
            found = sessions.enter_context(remote_session(connect_server.url, {}))
            for sql in statements:
                found.sql(sql)
            return found

        yield made


# A statement, what all applications share, and what the first and the second one make.
NAMES = [
    (OF_KEYS.format(call="remote.wanted()"), WANTED, "", WANTED, "", "remote.wanted"),
    (
        OF_KEYS.format(call="remote.outer_one()"),
        f"{WANTED};CREATE FUNCTION remote.outer_one() RETURNS INT RETURN remote.wanted()",
        "",
        WANTED,
        "",
        "remote.wanted",
    ),
    (OF_KEYS.format(call="brief()"), "", BRIEF, "", BRIEF, "brief"),
    (OF_SEEN, "", SEEN, "", SEEN, "seen"),
    (
        "SELECT f.id FROM fact f JOIN keys k ON f.p = k.p WHERE k.w = 1",
        "",
        "USE remote",
        "",
        "USE remote;CREATE TEMPORARY VIEW keys AS SELECT {} AS p, 1 AS w",
        "keys",
    ),
]


@pytest.mark.parametrize(
    ("sql", "shared", "there", "changed", "here", "named"), slow_but(NAMES, NAMES[0], NAMES[3])
)
def test_a_list_is_refused_if_a_name_means_something_else_over_spark_connect(
    application, tmp_path, sql, shared, there, changed, here, named
):
    def texts(statements: str, value: int) -> list[str]:
        return [each.replace("{}", str(value)) for each in statements.split(";") if each]

    application(*texts(shared, 1))
    first = Job(sql, str(tmp_path / "1.json"), Stages.LOCAL_TASK, show_rows=100)
    pruned = run_job(application(*texts(there, 1)), first)
    assert pruned.summary["kept"] == 3, pruned.summary["decisions"]
    done = run_job(application(*texts(there, 1)), map_join_of(first, pruned))
    plain = application(*texts(there, 1)).sql(sql).collect()
    assert (done.status, len(done.rows)) == (Status.DONE, len(plain)), done.message
    application(*texts(changed, 2))
    refused = run_job(application(*texts(here, 2)), map_join_of(first, pruned))
    assert refused.status is Status.REFUSED
    assert named in refused.message


def test_no_keys_depend_on_a_session_variable_over_spark_connect(application, tmp_path):
    declared = "DECLARE VARIABLE day INT DEFAULT 1"
    sql = OF_KEYS.format(call="day")
    first = Job(sql, str(tmp_path / "1.json"), Stages.LOCAL_TASK, show_rows=100)
    pruned = run_job(application(declared), first)
    assert pruned.summary["kept"] == pruned.summary["total"]
    done = run_job(application(declared.replace("1", "2")), map_join_of(first, pruned))
    rows = application(declared.replace("1", "2")).sql(sql).collect()
    assert sorted(done.rows) == sorted((str(row[0]),) for row in rows)
