"""The servers of the end-to-end suite, and a small warehouse in a real metastore."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from jinja2 import Template

from tests.e2e.backfill import DAYS, backfill
from tests.e2e.views import PICTURES
from tests.services.airflow import USER
from tests.services.java_options import SHORT_LIVED
from tests.services.processes import HOST

PROJECT = Path(__file__).parents[2]
MAKE_TABLES = Path(__file__).parent / "make_tables.py"


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)


def session_conf(metastore_service):
    """Spark's settings for a small session on the metastore."""
    return {
        **metastore_service.spark_conf(),
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    }


@pytest.fixture(scope="session")
def warehouse(metastore_service):
    """Spark's settings for the metastore, with the tables of ``make_tables.py`` in it."""
    conf = session_conf(metastore_service)
    pairs = [f"{name}={value}" for name, value in conf.items()]
    subprocess.run([sys.executable, str(MAKE_TABLES), *pairs], check=True)
    return conf


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A standalone cluster: a master and two workers of one core."""
    from tests.services.standalone import standalone

    with standalone(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="session")
def airflow(tmp_path_factory, postgres_server, metastore_service, cluster):
    """Airflow's services with the example DAGs and this suite's own, on the cluster."""
    from tests.services.airflow import airflow, wait_for

    dags = (PROJECT / "dags", Path(__file__).parent / "dags")
    folder = tmp_path_factory.mktemp("airflow")
    with airflow(folder, dags, postgres_server, metastore_service, cluster) as running:
        first = "/api/v2/dags?limit=1&dag_id_pattern=backfill_by_day"
        wait_for(lambda: running.ask(first)["dags"] or None)  # until the DAGs have been read
        yield running


@pytest.fixture(scope="session")
def cluster_sales(airflow):
    """The id of a run of the example on the cluster, which has succeeded."""
    run_id = airflow.trigger("cluster_sales", month=11)
    assert airflow.ended("cluster_sales", run_id) == "success"
    return run_id


@pytest.fixture(scope="session")
def backfilled(airflow):
    """The days of a backfill that has run to its end."""
    backfill(airflow, "none")
    return DAYS


@pytest.fixture(scope="session")
def user(airflow):
    """A browser in which the user has logged in."""
    pytest.importorskip("playwright", reason="playwright is not installed")
    from tests.services.browser import browser, log_in, program

    if program() is None:
        pytest.skip("there is no Chromium: `make browser` unpacks Debian's, where apt-get is")
    PICTURES.mkdir(exist_ok=True)
    with browser() as started:
        context = started.new_context(bypass_csp=False)
        log_in(context.new_page(), airflow.address, USER, airflow.password)
        yield context


@pytest.fixture
def page(user):
    """A page that has not complained when the test ends; ``asked`` has what it has requested."""
    page = user.new_page()
    page.set_default_timeout(60_000)
    complaints: list[str] = []
    page.on("console", lambda said: said.type == "error" and complaints.append(said.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: page.asked.append(asked.url))
    page.asked = []
    page.complaints = complaints
    yield page
    page.close()
    assert complaints == []


@pytest.fixture(scope="session")
def plain(metastore_service):
    """Plain Spark on the same metastore."""
    from airflow_hive_opt.spark.session.session import spark_session

    conf = {"spark.master": "local[2]", **session_conf(metastore_service)}
    with spark_session("plain", conf) as session:
        session.sparkContext.setLogLevel("ERROR")
        yield Plain(session)


class Plain:
    """What plain Spark says, rows sorted."""

    def __init__(self, session):
        self.session = session

    def rows(self, sql):
        return sorted(map(tuple, self.session.sql(sql).collect()), key=repr)

    def table(self, name):
        self.session.sql(f"REFRESH TABLE {name}")  # a task wrote it
        return self.rows(f"SELECT * FROM {name}")

    def example(self, name, params=(), ds=None):
        """The rows that the SELECT of an example's statement gives."""
        text = (PROJECT / "dags" / "sql" / name).read_text()
        text = Template(text).render(params=dict(params), ds=ds)
        return self.rows(text[text.index("SELECT") :])
