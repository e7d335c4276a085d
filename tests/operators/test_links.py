"""Where the links lead, and that they are there when a gate has closed."""

from __future__ import annotations

from importlib.metadata import version
from types import SimpleNamespace

import pytest
from packaging.version import Version

from airflow_hive_opt.links.pages import DescriptorLink, ExplainLink
from airflow_hive_opt.links.spark_ui import SparkUILink
from airflow_hive_opt.provider.airflow_compat import (
    HAS_PAGES,
    TAKES_PARTITIONS,
    pages_accept_browser_logins,
    store_link,
)
from airflow_hive_opt.provider.spark_provider import RESUMES
from tests.versions.installed import AIRFLOW, needs_airflow

KEY = SimpleNamespace(dag_id="d", run_id="manual__2026-01-31T00:00:00+00:00", task_id="g.t")
KEY.map_index = -1
RAN = SimpleNamespace(summary={"uri": "/x/1.json", "application_id": "app-1"})
NOTHING_YET = SimpleNamespace(summary=None)


@needs_airflow("3.0")
@pytest.mark.parametrize(("base", "below"), [("http://host:8080", ""), ("https://h/a/b/", "/a/b")])
def test_links_begin_with_the_path_of_the_api_server(monkeypatch, base, below):
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base)
    query = "run_id=manual__2026-01-31T00%3A00%3A00%2B00%3A00&task_id=g.t&map_index=-1"
    page = f"{below}/hive_opt/dags/d"
    assert DescriptorLink().get_link(RAN, ti_key=KEY) == f"{page}/descriptor?{query}"
    assert ExplainLink().get_link(RAN, ti_key=KEY) == f"{page}/explain?{query}"


def test_a_link_without_a_target_is_empty(monkeypatch):
    monkeypatch.setenv("AIRFLOW__HIVE_OPT__SPARK_UI_URL", "http://h/{application_id}")
    for link in (DescriptorLink(), ExplainLink(), SparkUILink()):
        assert link.get_link(NOTHING_YET, ti_key=KEY) == ""
    monkeypatch.setenv("AIRFLOW__HIVE_OPT__SPARK_UI_URL", "")
    assert SparkUILink().get_link(RAN, ti_key=KEY) == ""


def test_the_spark_ui_link_has_the_configured_address(monkeypatch):
    address = "http://history:18080/history/{application_id}/"
    monkeypatch.setenv("AIRFLOW__HIVE_OPT__SPARK_UI_URL", address)
    assert SparkUILink().get_link(RAN, ti_key=KEY) == "http://history:18080/history/app-1/"


def test_there_is_no_link_if_airflow_has_no_pages(monkeypatch):
    monkeypatch.setattr("airflow_hive_opt.links.pages.HAS_PAGES", False)
    assert DescriptorLink().get_link(RAN, ti_key=KEY) == ""


@needs_airflow("3.0")
def test_the_probe_for_browser_logins_agrees_with_airflows_version():
    """The probe looks for a name in Airflow that may be renamed."""
    assert pages_accept_browser_logins() is (Version("3.1") <= AIRFLOW)


def test_the_probes_for_features_agree_with_airflows_version():
    """Each probe looks for a name in Airflow or its Spark provider that may be renamed."""
    assert HAS_PAGES is (Version("3.0") <= AIRFLOW)
    assert TAKES_PARTITIONS is (Version("3.3") <= AIRFLOW)
    provider = Version(version("apache-airflow-providers-apache-spark"))
    assert RESUMES is (Version("3.3") <= AIRFLOW and Version("6.1") <= provider)


def test_a_link_is_stored_in_xcom_since_airflow_3():
    pushed = {}
    instance = SimpleNamespace(xcom_push=lambda key, value: pushed.update({key: value}))
    store_link({"ti": instance}, SparkUILink(), "http://h:4040")
    store_link({"ti": instance}, SparkUILink(), None)
    assert list(pushed.values()) == ["http://h:4040"] * (Version("3.0") <= AIRFLOW)
