"""One partition on S3, overwritten over Spark Connect: old rows stay until new ones are written."""

from __future__ import annotations

import signal
import threading
from contextlib import nullcontext

import pytest
from pyspark.errors import PySparkException

from airflow_hive_opt.spark.map_join.dynamic_overwrite import dynamic_overwrite, has_overwritten
from airflow_hive_opt.spark.map_join.execution import execute
from airflow_hive_opt.spark.session.connect import remote_session
from airflow_hive_opt.spark.session.session_conf import conf_set
from tests.cases import slow_but
from tests.services.s3_server import Fault, Kind, Request
from tests.services.spark_connect import spark_connect
from tests.spark.test_dynamic_overwrite import (
    HEAD,
    QUERY,
    make_filled,
    make_sources,
    ran_as,
    state,
    writes_as_plain_spark,
)

TABLE = "warehouse/over.db/result/"
PARTITION = f"{TABLE}ds=2026-01-31/n=3/"
STAGING = f"{TABLE}.spark-staging-"
OVERWRITE = HEAD.format("over.result") + QUERY.format(0)
IN_TWO_FILES = OVERWRITE.replace("SELECT", "SELECT /*+ REPARTITION_BY_RANGE(2, s.amount) */", 1)


@pytest.fixture(scope="module")
def server(settings, tmp_path_factory):
    with spark_connect(tmp_path_factory.mktemp("connect"), settings) as server:
        with remote_session(server.url, {}) as session:
            session.sql("CREATE DATABASE over LOCATION 's3a://lake/warehouse/over.db'")
            make_sources(session)
        yield server


@pytest.fixture
def remote(server, store):
    with remote_session(server.url, {}) as session:
        yield session


@pytest.fixture
def make(remote, store):
    """A table with rows in two partitions, and a plain twin of it."""

    def made(how: str = "USING parquet") -> None:
        make_filled(remote, how)
        store.forget()

    return made


def left_in(store, prefix):
    """The objects with data."""
    return [key for key, data in store.objects("lake", prefix).items() if data]


FORMATS = ["USING parquet", "USING csv", "STORED AS ORC"]


@pytest.mark.parametrize("how", slow_but(FORMATS, FORMATS[0]))
@pytest.mark.parametrize("least", [0, 1], ids=["rows", "none"])
def test_a_partition_gets_what_plain_spark_writes(remote, store, make, tmp_path, how, least):
    make(how)
    writes_as_plain_spark(remote, tmp_path, least)
    assert not left_in(store, STAGING)


@pytest.mark.parametrize("committer", slow_but(["magic", "directory", "partitioned"], "magic"))
def test_a_committer_of_s3a_without_sparks_classes(remote, store, make, committer):
    """Over the protocol, nothing tells of a setting in ``core-site.xml``, which ORC heeds.

    With this committer, some versions of Spark 4.0 to 4.2 would write to the table at once.
    """
    make("USING orc")
    remote.conf.set("fs.s3a.committer.name", committer)
    assert ran_as(remote, OVERWRITE) is not None
    written = [request.key for request in store.log if request.kind is Kind.PUT]
    staged = [key for key in written if key.endswith(".orc")]
    assert staged
    assert all(key.startswith(STAGING) and "/_temporary/0/" in key for key in staged)
    remote.sql(OVERWRITE.replace("over.result", "over.plain"))
    assert state(remote, "result") == state(remote, "plain")
    assert not left_in(store, STAGING)
    assert store.uploads("lake") == []


def test_a_committer_is_left_to_spark(remote, make):
    make()
    name = "spark.sql.sources.commitProtocolClass"
    remote.conf.set(name, "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol")
    assert dynamic_overwrite(remote, OVERWRITE, {}) is None
    remote.conf.unset(name)
    assert dynamic_overwrite(remote, OVERWRITE, {}) is not None


def test_a_query_that_fails_leaves_the_old_rows(remote, store, make):
    make()
    before = state(remote, "result")
    with pytest.raises(PySparkException, match="no such"):
        ran_as(remote, OVERWRITE.replace("s.note", "raise_error('no such')"))
    assert state(remote, "result") == before


@pytest.mark.parametrize("copied", slow_but([0, 1], 1))
def test_another_run_writes_all_if_files_cannot_be_moved(remote, store, make, copied):
    """Spark deletes the files that it could not move. So the retry must not count those there."""
    make()
    passes = first_copies(copied)

    def fail(request: Request) -> Fault | None:
        return None if passes(request) else Fault.SLOW_DOWN

    found = dynamic_overwrite(remote, IN_TWO_FILES, {})
    store.fault = fail
    with pytest.raises(PySparkException), conf_set(remote, found.conf):
        remote.sql(found.text)
    store.forget()
    assert len(left_in(store, PARTITION)) == copied
    assert not left_in(store, STAGING)
    assert not has_overwritten(remote, found.before)
    assert ran_as(remote, IN_TWO_FILES) is not None
    remote.sql(OVERWRITE.replace("over.result", "over.plain"))
    assert state(remote, "result") == state(remote, "plain")


def is_copied(request):
    return request.kind is Kind.COPY and request.key.startswith(PARTITION)


def first_copies(number):
    """Whether a request copies none but so many files to the partition; asked by many threads."""
    lock, seen = threading.Lock(), set()

    def passes(request: Request) -> bool:
        with lock:
            if is_copied(request) and len(seen) < number:
                seen.add(request.key)
            return not is_copied(request) or request.key in seen

    return passes


def held(copied):
    """A store's fault: all copies to the partition after so many never reach it.

    Returns also the event of the first one, and the one that lets them go.
    """
    reached, go, passes = threading.Event(), threading.Event(), first_copies(copied)

    def hold(request: Request) -> Fault | None:
        if passes(request):
            return None
        reached.set()
        go.wait(120)
        return Fault.CUT

    return hold, reached, go


@pytest.mark.parametrize("copied", slow_but([0, 1], 1))
def test_a_server_that_dies_as_it_moves_the_files(server, store, make, copied):
    """None or one of the two new files is there, and the retry writes both."""
    make()
    store.fault, reached, go = held(copied)
    before, errors = [], []

    def overwrite():
        def begins(beginning):
            before.append(beginning.before)
            return nullcontext()

        with remote_session(server.url, {}) as session:
            try:
                execute(session, (IN_TWO_FILES,), {}, 0, begins)
            except PySparkException as error:
                errors.append(error)

    writer = threading.Thread(target=overwrite, daemon=True)
    writer.start()
    try:
        assert reached.wait(120)
        server.kill(signal.SIGKILL)
    finally:
        go.set()
        store.forget()
    server.start()
    writer.join(120)
    assert errors
    assert len(left_in(store, PARTITION)) == copied
    with remote_session(server.url, {}) as session:
        assert not has_overwritten(session, before[0])
        ran_as(session, IN_TWO_FILES)
        session.sql(OVERWRITE.replace("over.result", "over.plain"))
        assert state(session, "result") == state(session, "plain")
