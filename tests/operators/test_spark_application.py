"""What SparkKubernetesOperator sends for the example DAG, and the tasks before and after it.

A stand-in for the API server checks it with the schema of the Kubeflow Spark operator. No test here
has a cluster.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from upath import UPath

from airflow_hive_opt.documents.job import Outcome, Status, outcome_path, read_job, write_outcome
from airflow_hive_opt.operators.spark_application import application_spec, read_outcome, write_job
from airflow_hive_opt.spark.application.shipping import ship
from airflow_hive_opt.spark.session.java import ensure_java
from tests.operators.dag_bags import DagBag

pytest.importorskip("kubernetes_validate")
from tests.services.java_options import SHORT_LIVED
from tests.services.kubernetes_stand_in import kubernetes_stand_in, violation

DAG_FILE = Path(__file__).parents[2] / "dags" / "spark_application_sales.py"
SUMMARY = {"uri": "file:///x", "kept": 1, "total": 2, "seconds": {}, "work": {}}
DONE = Outcome(Status.DONE, "kept 1 of 2 partitions", SUMMARY)


def context(written=None):
    instance = SimpleNamespace(
        dag_id="spark_application_sales",
        run_id="manual__2026-01-31T00:00:00+00:00",
        task_id="join",
        map_index=-1,
        try_number=1,
        xcom_push=lambda key, value: None,
        xcom_pull=lambda task_ids: written,
    )
    ids = {"ti": instance, "task_instance": instance, "run_id": instance.run_id}
    return {**ids, "dag": SimpleNamespace(parent_dag=False), "outlet_events": {}}


@pytest.fixture
def example():
    bag = DagBag(DAG_FILE)
    assert bag.import_errors == {}
    return bag.dags["spark_application_sales"].get_task("join")


@pytest.fixture
def sent(example, tmp_path, monkeypatch):
    """The SparkApplication of the example's run, as an API server gets it, and its job."""
    monkeypatch.setenv("AIRFLOW_CONN_KUBERNETES_DEFAULT", json.dumps({"conn_type": "kubernetes"}))
    written = write_job(context(), "SELECT 1", descriptor_path=str(tmp_path))
    with kubernetes_stand_in() as stand_in:
        config = tmp_path / "kube.yaml"
        config.write_text(stand_in.kube_config())
        example.config_file = str(config)
        example.render_template_fields(context(written))
        example.name = example.create_job_name()
        example._setup_spark_configuration(context(written))
        assert stand_in.rejected == []
        (application,) = stand_in.of("sparkapplications")
    del application["status"]
    return application, written


def test_the_application_runs_the_job_with_the_images_files(sent):
    application, written = sent
    spec = application["spec"]
    assert application["metadata"]["namespace"] == "etl"
    assert spec["arguments"] == [written["uri"]]
    assert spec["mainApplicationFile"] == "local:///opt/airflow-hive-opt/main.py"
    assert spec["deps"]["pyFiles"] == ["local:///opt/airflow-hive-opt/airflow_hive_opt.zip"]
    assert spec["restartPolicy"] == {"type": "Never"}
    job = read_job(UPath(spec["arguments"][0]))
    assert (job.sql, job.token) == ("SELECT 1", written["token"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arguments": "file:///x"}, "spec.arguments"),
        ({"mainFile": "main.py"}, "'mainFile' was unexpected"),
        ({"restartPolicy": {"type": "Sometimes"}}, "'Sometimes' is not one of"),
    ],
)
def test_the_schema_rejects_wrong_fields(sent, change, message):
    application, _ = sent
    wrong = deepcopy(application)
    wrong["spec"].update(change)
    assert message in violation("sparkapplications", wrong)
    assert violation("sparkapplications", application) is None


def test_the_outcome_is_read(tmp_path):
    written = write_job(context(), "SELECT :a", descriptor_path=str(tmp_path), parameters={"a": 1})
    with pytest.raises(AirflowFailException, match="wrote no outcome, and .* must both reach"):
        read_outcome(context(), written)
    path = UPath(read_job(UPath(written["uri"])).path)
    (folder := outcome_path(path)).mkdir()  # the storage tells nothing, so a retry asks again
    with pytest.raises(AirflowException) as told:
        read_outcome(context(), written)
    assert type(told.value) is AirflowException
    folder.rmdir()
    for outcome, error in (
        (Outcome(Status.FAILED, "no memory"), AirflowException),
        (Outcome(Status.REFUSED, "no such table"), AirflowFailException),
    ):
        write_outcome(replace(outcome, token=written["token"]), path)
        with pytest.raises(error, match=f"^{outcome.message}$"):
            read_outcome(context(), written)
    write_outcome(replace(DONE, token=written["token"]), path)
    assert read_outcome(context(), written) == {**SUMMARY, "uri": written["path"]}
    write_outcome(replace(DONE, token="another"), path)
    with pytest.raises(AirflowFailException, match="belongs to another application"):
        read_outcome(context(), written)


def test_a_job_that_is_wrong(tmp_path):
    with pytest.raises(AirflowFailException, match="sql must be a statement"):
        write_job(context(), " ", descriptor_path=str(tmp_path))


def test_another_folder_of_the_image():
    spec = application_spec("s3://b/1.job.json", image="i", spark_version="4.2.0", folder="/app")
    assert spec["mainApplicationFile"] == "local:///app/main.py"


@pytest.mark.slow
def test_the_images_files_start_the_driver(tmp_path, monkeypatch):
    """spark-submit as the image's entry point calls it, with the files where the spec has them."""
    ensure_java()
    image, work = tmp_path / "image", tmp_path / "work"
    image.mkdir()
    work.mkdir()
    ship(image)
    spec = application_spec("file:///gone.json", image="", spark_version="", folder=str(image))
    settings = tmp_path / "spark.properties"
    settings.write_text(
        "spark.master=k8s://http://127.0.0.1:1\nspark.submit.deployMode=cluster\n"
        "spark.kubernetes.submitInDriver=true\n"
        f"spark.submit.pyFiles={','.join(spec['deps']['pyFiles'])}\n"
    )
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", SHORT_LIVED)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    command = [
        *("spark-submit", "--deploy-mode", "client"),
        *("--properties-file", settings, "--class", "org.apache.spark.deploy.PythonRunner"),
        *(spec["mainApplicationFile"], *spec["arguments"]),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=work, check=False)
    assert "can't read the job file:///gone.json" in done.stdout
    assert done.returncode == 1
