"""The page of each operator, sensor and task group: its arguments, connections and example."""

from __future__ import annotations

import json
import re
from inspect import signature

import pytest
from airflow.models.connection import Connection

from airflow_hive_opt.operators.local_task import LocalTaskOperator
from airflow_hive_opt.operators.map_join import MapJoinOperator
from airflow_hive_opt.operators.statement import StatementOperator
from airflow_hive_opt.sensors.partition_descriptor import PartitionDescriptorSensor
from airflow_hive_opt.sensors.required_partitions import RequiredPartitionsSensor
from airflow_hive_opt.task_groups.map_join_prune import MapJoinPruneTaskGroup
from tests.pages import PAGES, PROJECT, blocks, commands
from tests.versions.installed import needs_airflow

GUIDES = PROJECT / "docs" / "guides"
OPERATORS = GUIDES / "operators" / "index.md"
ARGUMENTS = PROJECT / "docs" / "reference" / "arguments.md"
OWN = {
    "decorator": None,
    "local-task": LocalTaskOperator,
    "map-join": MapJoinOperator,
    "partition-descriptor": PartitionDescriptorSensor,
    "required-partitions": RequiredPartitionsSensor,
    "task-group": MapJoinPruneTaskGroup,
}
SENSORS = ("partition-descriptor", "required-partitions")
PATHS = {
    path.stem: path
    for folder in ("operators", "waiting")
    for path in (GUIDES / folder).glob("*.md")
    if path != OPERATORS and path.stem != "deferrable"  # which is about an argument
}
pages = pytest.mark.parametrize("name", sorted(PATHS))


def text_of(name):
    return PATHS[name].read_text()


def documented(name):
    """The first column of the table of arguments below the name of the page."""
    heading = text_of(name).partition("\n")[0]
    (section,) = re.findall(
        rf"^#{heading}\n(.*?)(?=^## |\Z)", ARGUMENTS.read_text(), re.MULTILINE | re.DOTALL
    )
    _, _, table = section.partition("| argument | default | meaning |\n|---|---|---|\n")
    return re.findall(r"^\| `(\w+)` \|", table.partition("\n\n")[0], re.MULTILINE)


def arguments(owner):
    found = signature(owner.__init__).parameters.values()
    return [
        each.name for each in found if each.kind is each.KEYWORD_ONLY or each.name == "group_id"
    ]


ALONE = {"for_other_runner"}  # the local task's own, which no other operator takes
COMMON = {*arguments(StatementOperator), *arguments(LocalTaskOperator)} - ALONE


def test_the_page_of_map_join_prune_describes_all_common_arguments():
    found = documented("map-join-prune")
    assert sorted(found) == sorted(COMMON)


@pytest.mark.parametrize("name", sorted(OWN))
def test_each_other_page_describes_its_own_arguments(name):
    owner = OWN[name]
    expected = set(arguments(owner) if owner else ()) - (set() if name in SENSORS else COMMON)
    assert sorted(documented(name)) == sorted(expected)


def test_the_overview_of_operators_links_every_page():
    assert len(PATHS) == len(OWN) + 2
    found = re.findall(r"\]\(([^)]+\.md)\)", OPERATORS.read_text())
    assert set(PATHS.values()) <= {(OPERATORS.parent / name).resolve() for name in found}


def connections():
    """``(page, variable, values)`` for every variable of a connection on the pages."""
    for path in PAGES:
        found: dict[str, list[str]] = {}
        for command in commands(path.read_text()):
            if given := re.fullmatch(r"export (AIRFLOW_CONN_\w+)='(.*)'", command):
                found.setdefault(given[1], []).append(given[2])
        yield from ((path.stem, variable, values) for variable, values in found.items())


def test_the_uri_and_the_json_of_a_documented_connection_are_equal():
    pages_of_both = ("connections", "map-join-prune", "required-partitions")
    found = [each for each in connections() if each[0] in pages_of_both]
    assert [len(values) for _, _, values in found] == [2] * 8
    for _, variable, values in found:
        by_uri, by_json = (
            Connection.from_json(value) if value.startswith("{") else Connection(uri=value)
            for value in values
        )
        for field in ("conn_type", "host", "port", "schema", "login", "password"):
            of_uri, of_json = (getattr(each, field) or None for each in (by_uri, by_json))
            assert of_uri == of_json, (variable, field)
        assert by_uri.extra_dejson == by_json.extra_dejson, variable


@pytest.fixture(scope="module")
def tables(spark):
    """The tutorial's tables of three months."""
    spark.sql("USE default")
    for block in blocks((PROJECT / "docs" / "getting-started" / "tutorial.md").read_text()):
        if re.match(r"-- (days|visits)\.sql\n", block.text):
            spark.sql(block.text)
    yield
    for table in ("days", "visits"):
        spark.sql(f"DROP TABLE {table}")


@pytest.fixture
def metastore(metastore_service, monkeypatch):
    """The metastore of the connection that sensors use, with the weekend's partitions."""
    from tests.services.thrift import add_partitions, create_table, thrift_client

    columns = [("visit", "bigint")]
    with thrift_client(metastore_service) as client:
        create_table(client, "default.visits", columns, [("day", "date")], "/nowhere/visits")
        days = [((f"2026-02-{day}",), f"/nowhere/{day}", {}) for day in (14, 15)]
        add_partitions(client, "default.visits", columns, days)
    document = {"conn_type": "hive_metastore", "host": metastore_service.host}
    document["port"] = metastore_service.port
    monkeypatch.setenv("AIRFLOW_CONN_METASTORE_DEFAULT", json.dumps(document))
    yield
    with thrift_client(metastore_service) as client:
        client.drop_table("default", "visits", False)


@pytest.fixture
def handed_over(spark, tables, tmp_path, monkeypatch):
    """A descriptor of another system, at the place that the page's variable names."""
    from upath import UPath

    from tests.spark.stages import job_of, prune

    (example,) = (b.text for b in blocks(text_of("map-join")) if b.language == "python")
    sql = re.search(r'SQL = """(.*?)"""', example, re.DOTALL)[1]
    path = tmp_path / "list.json"
    prune(spark, job_of(sql), UPath(path))
    monkeypatch.setenv("AIRFLOW_VAR_VISITS_LIST", str(path))


@needs_airflow("3.0")
@pages
def test_the_example_dag_of_each_page_runs(
    tables, metastore, handed_over, tmp_path, monkeypatch, capfd, name
):
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.db import initdb
    from airflow.utils.session import create_session

    from tests.operators.dag_bags import DagBag, sync_bag_to_db

    monkeypatch.setenv("AIRFLOW__HIVE_OPT__DESCRIPTOR_PATH", str(tmp_path / "descriptors"))
    (example,) = (block.text for block in blocks(text_of(name)) if block.language == "python")
    file = tmp_path / "example.py"
    file.write_text(example)
    initdb()
    bag = DagBag(file)
    assert bag.import_errors == {}
    with create_session() as session:
        session.merge(DagBundleModel(name="pages"))
    sync_bag_to_db(bag, "pages", "1")
    (dag,) = bag.dags.values()
    assert dag.test().state == "success"
    printed = capfd.readouterr()
    log = printed.out + printed.err
    page = text_of(name)
    for line in (
        "kept 2 of 90 partitions (97.8 % pruned): visits.day by 2 keys of days",
        "all 2 partitions are there",
    ):
        if line in page.replace("\n  ", " "):
            assert line in log
