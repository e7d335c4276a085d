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


def test_the_compose_file_has_all_services():
    assert {"metastore", "postgres", "spark-master", "spark-worker"} < set(SERVICES)
    assert {name.removeprefix("airflow-") for name in SERVICES if "airflow" in name} == {
        "api-server",
        "dag-processor",
        "init",
        "scheduler",
        "triggerer",
    }


@pytest.mark.parametrize("name", OURS)
def test_every_service_command_exists_on_this_machine(name):
    program, *arguments = compose.command(name, HERE=compose.DOCKER)
    assert Path(program).exists()
    for word in arguments:
        assert "$" not in word
        if word.startswith(str(compose.DOCKER)):
            assert Path(word).exists()
            assert f"docker/{Path(word).name}" in DOCKERFILE


@pytest.mark.parametrize("module", ["metastore", "standalone"])
def test_tests_start_servers_with_the_commands_of_the_compose_file(module):
    source = (Path(__file__).parent / f"{module}.py").read_text()
    assert "compose.command(" in source
    assert not re.search(r"org\.apache|spark-class|java\b.*-cp", source)


@pytest.mark.parametrize("name", LASTING)
def test_every_long_running_service_has_a_health_check(name):
    _, *test = SERVICES[name]["healthcheck"]["test"]
    assert test[0] in ("pg_isready", "python")
    if test[0] == "python":
        assert test[1] == "/opt/hive_opt/healthy.py"


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_container_images_are_pinned_and_run_with_minimal_rights(name):
    service = SERVICES[name]
    assert re.fullmatch(r"[\w-]+:\d+\.\d+[\w.-]*", service["image"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    if "build" in service:
        assert service["cap_drop"] == ["ALL"]
    else:
        assert service["user"] == "postgres"
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_the_built_image_is_pinned_and_runs_as_an_unprivileged_user():
    assert re.search(r"^FROM \S+:\d+\.\d+\.\d+-", DOCKERFILE, re.M)
    assert re.findall(r"^USER (\S+)", DOCKERFILE, re.M) == ["50000"]
    assert "useradd --uid 50000" in DOCKERFILE
    (version,) = re.findall(r"UV_VERSION := (\S+)", (PROJECT / "Makefile").read_text())
    assert f"uv=={version} " in DOCKERFILE


def test_spark_defaults_name_the_services_of_the_compose_file():
    lines = (compose.DOCKER / "spark-defaults.conf").read_text().splitlines()
    defaults = dict(line.split() for line in lines if line and not line.startswith("#"))
    port = compose.command("metastore")[-1]
    assert defaults["spark.hadoop.hive.metastore.uris"] == f"thrift://metastore:{port}"
    warehouse = compose.environment("metastore")["METASTORE_WAREHOUSE"]
    assert defaults["spark.sql.warehouse.dir"] == warehouse
    for name in ("metastore", "spark-worker", "airflow-scheduler", "tables"):
        assert f"warehouse:{warehouse}" in SERVICES[name]["volumes"]
