"""The containers: what they run is what the tests start, and as whom, and who reaches them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.services import compose

PROJECT = Path(__file__).parents[2]
DOCKERFILE = (compose.DOCKER / "Dockerfile").read_text()
SERVICES = compose.services()
OURS = sorted(name for name, service in SERVICES.items() if "command" in service)
LASTING = sorted(name for name, service in SERVICES.items() if service["restart"] != "no")


def test_all_services_are_there():
    assert {"metastore", "postgres", "spark-master", "spark-worker"} < set(SERVICES)
    assert {name.removeprefix("airflow-") for name in SERVICES if "airflow" in name} == {
        "api-server",
        "dag-processor",
        "init",
        "scheduler",
        "triggerer",
    }


@pytest.mark.parametrize("name", OURS)
def test_every_command_is_one_that_this_machine_can_start(name):
    program, *arguments = compose.command(name, HERE=compose.DOCKER)
    assert Path(program).exists()
    for word in arguments:
        assert "$" not in word
        if word.startswith(str(compose.DOCKER)):
            assert Path(word).exists()
            assert f"docker/{Path(word).name}" in DOCKERFILE


@pytest.mark.parametrize("module", ["metastore", "standalone"])
def test_the_tests_have_no_commands_of_their_own(module):
    source = (Path(__file__).parent / f"{module}.py").read_text()
    assert "compose.command(" in source
    assert not re.search(r"org\.apache|spark-class|java\b.*-cp", source)


@pytest.mark.parametrize("name", LASTING)
def test_a_lasting_service_tells_whether_it_is_well(name):
    _, *test = SERVICES[name]["healthcheck"]["test"]
    assert test[0] in ("pg_isready", "python")
    if test[0] == "python":
        assert test[1] == "/opt/hive_opt/healthy.py"


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_container_is_pinned_and_has_no_more_rights_than_it_needs(name):
    service = SERVICES[name]
    assert re.fullmatch(r"[\w-]+:\d+\.\d+[\w.-]*", service["image"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    if "build" in service:
        assert service["cap_drop"] == ["ALL"]
    else:
        assert service["user"] == "postgres"
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_the_image_is_pinned_and_runs_as_nobody_special():
    assert re.search(r"^FROM \S+:\d+\.\d+\.\d+-", DOCKERFILE, re.M)
    assert re.findall(r"^USER (\S+)", DOCKERFILE, re.M) == ["50000"]
    assert "useradd --uid 50000" in DOCKERFILE
    (version,) = re.findall(r"UV_VERSION := (\S+)", (PROJECT / "Makefile").read_text())
    assert f"uv=={version} " in DOCKERFILE


def test_sparks_defaults_name_the_services_of_the_set():
    lines = (compose.DOCKER / "spark-defaults.conf").read_text().splitlines()
    defaults = dict(line.split() for line in lines if line and not line.startswith("#"))
    port = compose.command("metastore")[-1]
    assert defaults["spark.hadoop.hive.metastore.uris"] == f"thrift://metastore:{port}"
    warehouse = compose.environment("metastore")["METASTORE_WAREHOUSE"]
    assert defaults["spark.sql.warehouse.dir"] == warehouse
    for name in ("metastore", "spark-worker", "airflow-scheduler", "tables"):
        assert f"warehouse:{warehouse}" in SERVICES[name]["volumes"]
