"""A partition list is valid only for the functions, views and variables that its keys came from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from pyspark.errors import PySparkException
from upath import UPath

from airflow_hive_opt.documents.binding import OtherSession
from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.documents.job import Job, Stages, Status
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.catalog import resolved_names
from tests.cases import slow_but
from tests.spark.handed_over import map_join_of
from tests.spark.stages import map_join, prune

DATABASES = ("named", "named_too")
UNMADE = "the map join's application does not make it"
INTO = "INSERT OVERWRITE TABLE named.written "
UPPER = "AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFUpper'"
LOWER = "AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFLower'"
OF_KEYS = "SELECT f.id FROM fact f JOIN keys k ON f.p = k.p WHERE k.w = {call}"


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    for shift, name in enumerate(DATABASES):
        spark.sql(f"CREATE DATABASE {name}")
        spark.sql(
            f"CREATE TABLE {name}.fact (id INT) PARTITIONED BY (p INT) STORED AS PARQUET",
        )
        spark.sql(
            f"INSERT INTO {name}.fact SELECT CAST(id AS INT), CAST(id % 10 AS INT) FROM range(40)"
        )
        spark.sql(
            f"CREATE TABLE {name}.keys USING parquet AS SELECT CAST(id AS INT) AS p, "
            f"CAST((id + {shift}) % 3 AS INT) AS w, upper(CHAR(65 + id)) AS t FROM range(10)"
        )
    spark.sql("CREATE TABLE named.written (id INT) STORED AS PARQUET")
    yield
    for name in (*DATABASES, "session"):
        drop_database(spark, name)


def drop_database(spark, name):
    """Under load, Hive's embedded metastore has objected to a drop that it had done."""
    try:
        spark.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")
    except PySparkException:
        if spark.catalog.databaseExists(name):
            raise


@dataclass(frozen=True)
class Named:
    """A statement whose keys depend on a name.

    ``made`` makes the name; ``redefined``, ``dropped`` and ``shadowed`` change its meaning.
    ``identified`` says that another session can recognize it.
    """

    sql: str
    made: tuple[str, ...]
    redefined: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    shadowed: tuple[str, ...] = ()
    identified: bool = True


def of_function(call: str, made: str, **changes: str) -> Named:
    return Named(OF_KEYS.format(call=call), (made,), **{k: (v,) for k, v in changes.items()})


NAMES = {
    "function": of_function(
        "wanted()",
        "CREATE FUNCTION named.wanted() RETURNS INT RETURN 1",
        redefined="CREATE OR REPLACE FUNCTION named.wanted() RETURNS INT RETURN 2",
        dropped="DROP FUNCTION named.wanted",
        shadowed="CREATE TEMPORARY FUNCTION wanted() RETURNS INT RETURN 2",
    ),
    "function of another database": of_function(
        "named_too.wanted ()",
        "CREATE FUNCTION named_too.wanted() RETURNS INT RETURN 1",
        redefined="CREATE OR REPLACE FUNCTION named_too.wanted() RETURNS INT RETURN 2",
        dropped="DROP FUNCTION named_too.wanted",
    ),
    "commented call": of_function(
        "`wanted` /* '--' */ ()",
        "CREATE FUNCTION named.wanted() RETURNS INT RETURN 1",
        redefined="CREATE OR REPLACE FUNCTION named.wanted() RETURNS INT RETURN 2",
        dropped="DROP FUNCTION named.wanted",
    ),
    "call after a nested comment": of_function(
        "wanted /* a /* b */ c */ ()",
        "CREATE FUNCTION named.wanted() RETURNS INT RETURN 1",
        redefined="CREATE OR REPLACE FUNCTION named.wanted() RETURNS INT RETURN 2",
    ),
    "call after a comment's mark in a string": Named(
        "SELECT f.id FROM fact f JOIN keys k ON f.p = k.p "
        "WHERE k.t NOT LIKE '/*%' AND k.t <> '--' AND k.w = named /* x */ . wanted /* x */ ()",
        ("CREATE FUNCTION named.wanted() RETURNS INT RETURN 1",),
        redefined=("CREATE OR REPLACE FUNCTION named.wanted() RETURNS INT RETURN 2",),
    ),
    "view in a database called session": Named(
        "SELECT f.id FROM fact f JOIN session.seen k ON f.p = k.p",
        (
            "CREATE DATABASE IF NOT EXISTS session",
            "CREATE OR REPLACE VIEW session.seen AS SELECT * FROM named.keys WHERE w = 1",
        ),
        redefined=("CREATE OR REPLACE VIEW session.seen AS SELECT * FROM named.keys WHERE w = 2",),
    ),
    "function in a function": Named(
        OF_KEYS.format(call="outer_one(0)"),
        (
            "CREATE FUNCTION named.wanted() RETURNS INT RETURN 1",
            "CREATE FUNCTION named.outer_one(x INT) RETURNS INT RETURN x + wanted()",
        ),
        redefined=("CREATE OR REPLACE FUNCTION named.wanted() RETURNS INT RETURN 2",),
        dropped=("DROP FUNCTION named.wanted",),
        shadowed=("CREATE TEMPORARY FUNCTION wanted() RETURNS INT RETURN 2",),
    ),
    "function as a default": Named(
        OF_KEYS.format(call="outer_one()"),
        (
            "CREATE FUNCTION named.wanted() RETURNS INT RETURN 1",
            "CREATE FUNCTION named.outer_one(x INT DEFAULT wanted()) RETURNS INT RETURN x",
        ),
        redefined=("CREATE OR REPLACE FUNCTION named.wanted() RETURNS INT RETURN 2",),
    ),
    "table in a function": Named(
        OF_KEYS.format(call="wanted()"),
        (
            "CREATE VIEW named.below AS SELECT 1 AS w",
            "CREATE FUNCTION named.wanted() RETURNS INT RETURN (SELECT max(w) FROM below)",
        ),
        redefined=("CREATE OR REPLACE VIEW named.below AS SELECT 2 AS w",),
        dropped=("DROP VIEW named.below",),
    ),
    "function made in another database": Named(
        OF_KEYS.format(call="named.wanted()"),
        (
            "CREATE VIEW named.below AS SELECT 1 AS w",
            "CREATE VIEW named_too.below AS SELECT 2 AS w",
            "CREATE FUNCTION named.wanted() RETURNS INT RETURN (SELECT max(w) FROM below)",
        ),
        redefined=(
            "USE named_too",
            "CREATE OR REPLACE FUNCTION named.wanted() RETURNS INT "
            "RETURN (SELECT max(w) FROM below)",
            "USE named",
        ),
    ),
    "table function": Named(
        "SELECT f.id FROM fact f JOIN seen k ON f.p = k.p",
        (
            "CREATE FUNCTION named.wanted_ones() RETURNS TABLE(p INT) RETURN SELECT 1",
            "CREATE VIEW named.seen AS SELECT * FROM wanted_ones()",
        ),
        redefined=(
            "CREATE OR REPLACE FUNCTION named.wanted_ones() RETURNS TABLE(p INT) RETURN SELECT 2",
        ),
        dropped=("DROP FUNCTION named.wanted_ones",),
    ),
    "function of a key": Named(
        "SELECT f.id FROM fact f "
        "JOIN (SELECT shifted(p) AS p FROM keys WHERE w = 1) k ON f.p = k.p",
        ("CREATE FUNCTION named.shifted(x INT) RETURNS INT RETURN x + 1",),
        redefined=("CREATE OR REPLACE FUNCTION named.shifted(x INT) RETURNS INT RETURN x + 2",),
        dropped=("DROP FUNCTION named.shifted",),
        shadowed=("CREATE TEMPORARY FUNCTION shifted(x INT) RETURNS INT RETURN x + 2",),
    ),
    "temporary function": of_function(
        "wanted()",
        "CREATE TEMPORARY FUNCTION wanted() RETURNS INT RETURN 1",
        redefined="CREATE OR REPLACE TEMPORARY FUNCTION wanted() RETURNS INT RETURN 2",
        dropped=UNMADE,
    ),
    "temporary function before another": Named(
        OF_KEYS.format(call="wanted()"),
        (
            "CREATE FUNCTION named.wanted() RETURNS INT RETURN 2",
            "CREATE TEMPORARY FUNCTION wanted() RETURNS INT RETURN 1",
        ),
        dropped=(UNMADE,),
    ),
    "qualified temporary function": of_function(
        "session.wanted()",
        "CREATE TEMPORARY FUNCTION wanted() RETURNS INT RETURN 1",
        redefined="CREATE OR REPLACE TEMPORARY FUNCTION wanted() RETURNS INT RETURN 2",
        dropped=UNMADE,
    ),
    "function below a view": Named(
        "SELECT f.id FROM fact f JOIN seen k ON f.p = k.p",
        (
            "CREATE FUNCTION named.wanted() RETURNS INT RETURN 1",
            "CREATE VIEW named.seen AS SELECT * FROM keys WHERE w = wanted()",
        ),
        redefined=("CREATE OR REPLACE FUNCTION named.wanted() RETURNS INT RETURN 2",),
        dropped=("DROP FUNCTION named.wanted",),
    ),
    "view with other settings": Named(
        "SELECT f.id FROM fact f JOIN seen k ON f.p = k.p",
        ("CREATE VIEW named.seen AS SELECT hour(CAST(28800 AS TIMESTAMP)) AS p",),
        redefined=(
            "SET spark.sql.session.timeZone=Asia/Tokyo",
            "CREATE OR REPLACE VIEW named.seen AS SELECT hour(CAST(28800 AS TIMESTAMP)) AS p",
            "RESET spark.sql.session.timeZone",
        ),
    ),
    "temporary view": Named(
        "SELECT f.id FROM fact f JOIN here k ON f.p = k.p",
        ("CREATE TEMPORARY VIEW here AS SELECT * FROM keys WHERE w = 1",),
        redefined=("CREATE OR REPLACE TEMPORARY VIEW here AS SELECT * FROM keys WHERE w = 2",),
        dropped=(UNMADE,),
    ),
    "temporary view before a table": Named(
        "SELECT f.id FROM fact f JOIN keys k ON f.p = k.p",
        ("CREATE TEMPORARY VIEW keys AS SELECT 3 AS p",),
        redefined=("CREATE OR REPLACE TEMPORARY VIEW keys AS SELECT 4 AS p",),
        dropped=(UNMADE,),
    ),
    "temporary view below another": Named(
        "SELECT f.id FROM fact f JOIN above k ON f.p = k.p",
        (
            "CREATE TEMPORARY VIEW here AS SELECT * FROM keys WHERE w = 1",
            "CREATE TEMPORARY VIEW above AS SELECT * FROM here",
        ),
        redefined=("CREATE OR REPLACE TEMPORARY VIEW here AS SELECT * FROM keys WHERE w = 2",),
        dropped=(UNMADE,),
    ),
    "global temporary view below another": Named(
        "SELECT f.id FROM fact f JOIN above k ON f.p = k.p",
        (
            "CREATE GLOBAL TEMPORARY VIEW here AS SELECT * FROM named.keys WHERE w = 1",
            "CREATE TEMPORARY VIEW above AS SELECT * FROM global_temp.here",
        ),
        redefined=(
            "CREATE OR REPLACE GLOBAL TEMPORARY VIEW here AS SELECT * FROM named.keys WHERE w = 2",
        ),
    ),
    "small table": Named(
        "SELECT f.id FROM fact f JOIN keys k ON f.p = k.p WHERE k.w = 1",
        (),
        shadowed=("CREATE TEMPORARY VIEW keys AS SELECT 5 AS p, 1 AS w",),
    ),
    "big table": Named(
        "SELECT f.id FROM fact f JOIN keys k ON f.p = k.p WHERE k.w = 1",
        (),
        shadowed=("CREATE TEMPORARY VIEW fact AS SELECT 99 AS id, 5 AS p",),
    ),
    "function of Java": Named(
        "SELECT f.id FROM fact f JOIN keys k ON f.p = k.p WHERE big(k.t) = 'C'",
        (f"CREATE FUNCTION named.big {UPPER}",),
        redefined=("DROP FUNCTION named.big", f"CREATE FUNCTION named.big {LOWER}"),
        dropped=("DROP FUNCTION named.big",),
        shadowed=("CREATE TEMPORARY FUNCTION big(x STRING) RETURNS STRING RETURN 'C'",),
        identified=False,
    ),
    "temporary function of Java": Named(
        "SELECT f.id FROM fact f JOIN keys k ON f.p = k.p WHERE big(k.t) = 'C'",
        (f"CREATE TEMPORARY FUNCTION big {UPPER}",),
        redefined=("DROP TEMPORARY FUNCTION big", f"CREATE TEMPORARY FUNCTION big {LOWER}"),
        dropped=(UNMADE,),
        identified=False,
    ),
    "function of Java below a view": Named(
        "SELECT f.id FROM fact f JOIN seen k ON f.p = k.p",
        (
            f"CREATE FUNCTION named.big {UPPER}",
            "CREATE VIEW named.seen AS SELECT * FROM keys WHERE big(t) = 'C'",
        ),
        redefined=("DROP FUNCTION named.big", f"CREATE FUNCTION named.big {LOWER}"),
        identified=False,
    ),
}
CHANGES = [
    (name, change)
    for name, named in NAMES.items()
    for change in ("redefined", "dropped", "shadowed")
    if getattr(named, change)
]
IN_SHORT = ("function", "view with other settings", "temporary view", "function of Java")


@pytest.fixture
def names(spark):
    """Removes what a statement's names stood for."""
    yield
    for database in DATABASES:
        for kind, listed in (("FUNCTION", "USER FUNCTIONS"), ("VIEW", "VIEWS")):
            for row in spark.sql(f"SHOW {listed} IN {database}").collect():
                name = row[0] if kind == "FUNCTION" else f"{row.namespace}.{row.viewName}"
                if "." in name.strip("."):
                    spark.sql(f"DROP {kind} {name}")
    spark.catalog.dropGlobalTempView("here")


def session(spark, statements):
    """A new application's session, in which the statements have run."""
    made = spark.newSession()
    made.sql("USE named")
    for sql in statements:
        made.sql(sql)
    return made


def temporary(statements):
    """Those of the statements that an application runs for itself."""
    return [sql for sql in statements if " TEMPORARY " in sql and " GLOBAL " not in sql]


def written(spark) -> list[tuple]:
    spark.sql("REFRESH TABLE named.written")
    return sorted(map(tuple, spark.table("named.written").collect()))


def before_writing(spark, into: str) -> None:
    """Fills the table that the statement overwrites, if it does."""
    if into:
        spark.sql("INSERT OVERWRITE TABLE named.written SELECT -1")


def plain(spark, applied, sql: str, into: str) -> tuple[str | None, list]:
    """Spark's objection, and the rows of the statement, or of the table afterwards."""
    before_writing(spark, into)
    try:
        rows = sorted(map(tuple, session(spark, applied).sql(into + sql).collect()))
    except Exception as error:  # noqa: BLE001 - whatever plain Spark says
        return in_words(error), []
    return None, written(spark) if into else rows


OF_FEW = [each for each in CHANGES if each[0] in IN_SHORT]


@pytest.mark.parametrize(
    ("name", "change", "into"),
    slow_but(
        [*((*each, "") for each in CHANGES), *((*each, INTO) for each in OF_FEW)],
        *((*each, "") for each in OF_FEW),
        ("small table", "shadowed", ""),
        ("function", "redefined", INTO),
    ),
)
def test_a_list_is_refused_if_a_function_view_or_variable_changed(
    spark, tmp_path, names, name, change, into
):
    named = NAMES[name]
    changed = getattr(named, change)
    first = Job(into + named.sql, str(tmp_path / "1.json"), Stages.LOCAL_TASK, show_rows=1_000)
    pruned = run_job(session(spark, named.made), first)
    assert pruned.status is Status.DONE, pruned.message
    assert (pruned.summary["kept"] < pruned.summary["total"]) == named.identified
    applied = [] if changed == (UNMADE,) else temporary(named.made) + temporary(changed)
    session(spark, [sql for sql in changed if sql not in (*applied, UNMADE)])
    objection, rows = plain(spark, applied, named.sql, into)
    before_writing(spark, into)
    outcome = run_job(session(spark, applied), map_join_of(first, pruned))
    if outcome.status is Status.DONE:
        assert objection is None
        ours = written(spark) if into else sorted((int(row[0]),) for row in outcome.rows)
        assert ours == rows
    else:
        assert objection or outcome.status is Status.REFUSED
        assert objection or "in another session: " in outcome.message
        assert not into or written(spark) == [(-1,)]


@pytest.mark.parametrize("name", slow_but(NAMES, *IN_SHORT))
def test_a_list_is_used_if_functions_and_views_are_unchanged(spark, tmp_path, names, name):
    named = NAMES[name]
    first = Job(named.sql, str(tmp_path / "1.json"), Stages.LOCAL_TASK, show_rows=1_000)
    pruned = run_job(session(spark, named.made), first)
    joined = run_job(session(spark, temporary(named.made)), map_join_of(first, pruned))
    objection, rows = plain(spark, temporary(named.made), named.sql, "")
    assert (joined.status, objection) == (Status.DONE, None), joined.message
    assert sorted((int(row[0]),) for row in joined.rows) == rows
    decision = pruned.summary["decisions"][0]
    assert (decision["reason"] == Reason.PRUNED) == named.identified
    if named.identified:
        assert decision["kept"] < decision["total"] == 10
    else:
        assert decision["reason"] == Reason.NOT_HANDED_OVER
        both = replace(first, stages=Stages.BOTH, path=str(tmp_path / "3.json"))
        whole = run_job(session(spark, temporary(named.made)), both)
        assert whole.summary["kept"] < 10  # in one application the keys count
        assert whole.rows == joined.rows


def test_keys_of_a_python_function_are_not_handed_over(spark, tmp_path):
    sql = "SELECT f.id FROM fact f JOIN keys k ON f.p = k.p WHERE of_python(k.w) = 1"
    there, here = session(spark, ()), session(spark, ())
    there.udf.register("of_python", lambda w: w, "int")
    here.udf.register("of_python", lambda w: w - 1, "int")
    first = Job(sql, str(tmp_path / "1.json"), Stages.LOCAL_TASK, show_rows=1_000)
    pruned = run_job(there, first)
    joined = run_job(here, map_join_of(first, pruned))
    assert pruned.summary["kept"] == pruned.summary["total"]
    assert sorted(int(row[0]) for row in joined.rows) == sorted(
        row[0] for row in here.sql(sql).collect()
    )


def test_a_python_function_that_no_key_depends_on_does_not_matter(spark, tmp_path):
    """A function in the select list has no effect on the partitions."""
    sql = "SELECT of_python(f.id) FROM fact f JOIN keys k ON f.p = k.p WHERE k.w = 1"
    there, here = session(spark, ()), session(spark, ())
    there.udf.register("of_python", lambda x: x, "int")
    here.udf.register("of_python", lambda x: x + 100, "int")
    first = Job(sql, str(tmp_path / "1.json"), Stages.LOCAL_TASK, show_rows=1_000)
    pruned = run_job(there, first)
    joined = run_job(here, map_join_of(first, pruned))
    assert joined.summary["kept"] == 3
    assert sorted(int(row[0]) for row in joined.rows) == sorted(
        row[0] for row in here.sql(sql).collect()
    )


def test_keys_of_a_view_of_a_data_frame_are_not_handed_over(spark, tmp_path):
    sql = "SELECT f.id FROM fact f JOIN framed k ON f.p = k.p"
    there, here = session(spark, ()), session(spark, ())
    there.createDataFrame([(1,)], "p INT").createOrReplaceTempView("framed")
    here.createDataFrame([(2,)], "p INT").createOrReplaceTempView("framed")
    first = Job(sql, str(tmp_path / "1.json"), Stages.LOCAL_TASK, show_rows=1_000)
    pruned = run_job(there, first)
    joined = run_job(here, map_join_of(first, pruned))
    assert joined.status is Status.DONE, joined.message
    assert sorted(joined.rows) == [("12",), ("2",), ("22",), ("32",)]


def test_a_list_is_refused_if_a_session_variable_has_another_value(spark, tmp_path):
    """A job's session has no variables; these are sessions of the caller, with a view."""
    view = "CREATE TEMPORARY VIEW here AS SELECT * FROM keys WHERE w = wanted"
    made = ["DECLARE VARIABLE wanted INT DEFAULT 1", view]
    job = Job("SELECT f.id FROM fact f JOIN here k ON f.p = k.p")
    path = UPath(tmp_path / "1.json")
    pruned = prune(session(spark, made), job, path)
    assert pruned.descriptor.kept == 3
    other = session(spark, [made[0].replace("1", "2"), view])
    with pytest.raises(OtherSession, match="variable wanted is defined differently"):
        map_join(other, job, path, pruned.descriptor.digest)
    done = map_join(session(spark, made), job, path, pruned.descriptor.digest)
    assert len(done.rows) == 12


@pytest.mark.parametrize("seen", ["keys", "mine"])
def test_a_list_is_refused_for_another_user_if_keys_depend_on_the_user(
    spark, tmp_path, monkeypatch, seen
):
    """Local task and map join may run as two users, on the worker and on a cluster."""
    condition = "k.t = upper(current_user())" if seen == "keys" else "true"
    sql = f"SELECT f.id FROM fact f JOIN {seen} k ON f.p = k.p WHERE {condition}"
    view = "CREATE TEMPORARY VIEW mine AS SELECT * FROM keys WHERE t = upper(current_user)"
    first = Job(sql, str(tmp_path / "1.json"), Stages.LOCAL_TASK, show_rows=1_000)
    pruned = run_job(session(spark, [view]), first)
    joined = map_join_of(first, pruned)
    assert run_job(session(spark, [view]), joined).status is Status.DONE
    user = resolved_names._OF_THE_SESSION[0]
    monkeypatch.setattr(
        resolved_names.Names, "_of_the_session", lambda *_: {user: "another user's digest"}
    )
    refused = run_job(session(spark, [view]), joined)
    assert refused.status is Status.REFUSED
    assert "current_user" in refused.message
