"""What spark-submit sends to Kubernetes for the operator; a stand-in for the API server checks it.

No test here has a cluster. spark-submit, Airflow's Spark provider and their clients are real.
"""

from __future__ import annotations

import json
import re
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from upath import UPath

from airflow_hive_opt.documents.job import Outcome, Status, read_job, write_outcome
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.provider import connections
from airflow_hive_opt.provider.spark_provider import RESUMES

pytest.importorskip("kubernetes_validate")
from tests.services.java_options import SHORT_LIVED
from tests.services.kubernetes_stand_in import KubernetesStandIn, kubernetes_stand_in

SUMMARY = {"uri": "file:///x", "kept": 1, "total": 2, "seconds": {}, "work": {}}
DONE = Outcome(Status.DONE, "kept 1 of 2 partitions", SUMMARY)
IMAGE = "registry.example.com/spark:4.3.0"
NAMESPACE = "etl"
CLUSTER_MODE = {"deploy-mode": "cluster", "namespace": NAMESPACE}
needs_resumption = pytest.mark.skipif(not RESUMES, reason="this Spark provider follows nothing")


def drive(pod) -> tuple[str, int]:
    """What a driver does: writes the outcome of its job."""
    (container,) = pod["spec"]["containers"]
    job = read_job(UPath(container["args"][-1]))
    write_outcome(replace(DONE, token=job.token), UPath(job.path))
    return "Succeeded", 0


def configure(stand_in, tmp_path, monkeypatch) -> None:
    """Says to spark-submit and to Airflow where the API server is."""
    config = tmp_path / "kube.yaml"
    config.write_text(stand_in.kube_config())
    monkeypatch.setenv("KUBECONFIG", str(config))
    monkeypatch.setenv("AIRFLOW__KUBERNETES_EXECUTOR__IN_CLUSTER", "False")
    monkeypatch.setenv("AIRFLOW__KUBERNETES_EXECUTOR__CONFIG_FILE", str(config))


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A stand-in whose pods end as drivers that succeed, and clients that know it."""
    with kubernetes_stand_in() as stand_in:
        stand_in.on_pod = drive
        configure(stand_in, tmp_path, monkeypatch)
        monkeypatch.setenv("SPARK_SUBMIT_OPTS", SHORT_LIVED)
        monkeypatch.setenv("AIRFLOW_HIVE_OPT_TASK_PID", "0")
        yield stand_in


def context(try_number=1, max_tries=1, store=None, **ids):
    names = {"dag_id": "d", "run_id": "r", "task_id": "t", "map_index": -1, **ids}
    instance = SimpleNamespace(
        **names,
        try_number=try_number,
        max_tries=max_tries,
        stats_tags={},
        xcom_push=lambda key, value: None,
    )
    stored = store if store is None else SimpleNamespace(get=store.get, set=store.__setitem__)
    return {
        "ti": instance,
        "dag_run": SimpleNamespace(clear_number=0),
        "task_state_store": stored,
        "outlet_events": {},
    }


def operator(monkeypatch, tmp_path, url="http://127.0.0.1:1", extra=None, conf=None, **options):
    extra = CLUSTER_MODE if extra is None else extra
    connection = {"conn_type": "spark", "host": f"k8s://{url}", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps(connection))
    given = {
        "spark.kubernetes.container.image": IMAGE,
        "spark.kubernetes.file.upload.path": f"file://{tmp_path}/uploads",
        "spark.kubernetes.authenticate.driver.serviceAccountName": "spark",
    }
    return MapJoinPruneOperator(
        task_id="t",
        sql="SELECT 1",
        conn_id="cluster",
        conf={name: value for name, value in {**given, **(conf or {})}.items() if value},
        descriptor_path=str(tmp_path / "attempts"),
        **options,
    )


def properties(cluster) -> dict[str, str]:
    """The driver's settings, from its config map."""
    (found,) = (m["data"] for m in cluster.of("configmaps") if "spark.properties" in m["data"])
    lines = (line.partition("=") for line in found["spark.properties"].splitlines() if "=" in line)
    return {name: re.sub(r"\\(.)", r"\1", value) for name, _, value in lines}


@pytest.mark.slow
def test_the_driver_gets_image_account_files_settings_and_its_job(cluster, monkeypatch, tmp_path):
    (tmp_path / "uploads").mkdir()
    mine = tmp_path / "mine.py"
    mine.write_text("")
    made = operator(
        monkeypatch,
        tmp_path,
        cluster.url,
        conf={"spark.sql.shuffle.partitions": 8},
        py_files=str(mine),
        env_vars={"TZ": "Europe/Berlin"},
        driver_memory="2g",
    )
    names = {"dag_id": "Sales_of_" + "x" * 240, "run_id": "manual__2026-01-31T00:00:00+00:00"}
    made.execute(context(**names))
    assert cluster.rejected == []
    (pod,) = cluster.created
    assert pod["metadata"]["namespace"] == NAMESPACE
    assert pod["spec"]["serviceAccountName"] == "spark"
    assert pod["spec"]["restartPolicy"] == "Never"
    (container,) = pod["spec"]["containers"]
    assert container["image"] == IMAGE
    variables = {found["name"]: found.get("value") for found in container["env"]}
    assert variables["TZ"] == "Europe/Berlin"
    assert "AIRFLOW_HIVE_OPT_TASK_PID" not in variables  # a process of another machine
    *_, runner, main, job_uri = container["args"]
    assert runner == "org.apache.spark.deploy.PythonRunner"
    assert read_job(UPath(job_uri)).sql == "SELECT 1"
    settings = properties(cluster)
    assert settings["spark.sql.shuffle.partitions"] == "8"
    assert settings["spark.driver.memory"] == "2g"
    package, other = settings["spark.submit.pyFiles"].split(",")
    for uploaded in (main, package, other):
        assert uploaded.startswith(f"file://{tmp_path}/uploads/")
    assert other.endswith("/mine.py")
    assert "submitted import main" in Path(urlsplit(main).path).read_text()
    with zipfile.ZipFile(urlsplit(package).path) as archive:
        assert "airflow_hive_opt/spark/application/submitted.py" in archive.namelist()
    assert len(cluster.of("services")) == 1


@pytest.mark.slow
@needs_resumption
def test_a_followed_driver_is_found_in_every_namespace_and_resumed(cluster, monkeypatch, tmp_path):
    (tmp_path / "uploads").mkdir()
    store: dict[str, str] = {}

    def run(**attempt):
        made = operator(monkeypatch, tmp_path, cluster.url, track_driver_via_k8s_api=True)
        return made.execute(context(store=store, **attempt))["uri"]

    first = run()
    (pod,) = cluster.created
    assert cluster.deleted == [pod["metadata"]["name"]]
    assert run(try_number=2) == first  # by the status that Airflow stored
    (status,) = (key for key in store if key.endswith("_status"))
    del store[status]
    assert run(try_number=2) == first  # by the outcome; the pod is gone
    assert len(cluster.created) == 1
    store[status] = "Succeeded"
    ends = ("_status", "_path", "_token", "_application")
    (key,) = (key for key in store if not key.endswith(ends))
    cleared = key.removesuffix("_1") + "_3"
    store |= {cleared: f"{NAMESPACE}:lost-driver", f"{cleared}_path": first}
    assert run(try_number=3, max_tries=3).endswith("/3.json")  # not by that status
    assert len(cluster.created) == 2


@pytest.mark.slow
def test_a_kill_deletes_the_driver(cluster, monkeypatch, tmp_path):
    (tmp_path / "uploads").mkdir()
    cluster.on_pod = lambda pod: None
    made = operator(monkeypatch, tmp_path, cluster.url)

    def kill():
        while not any("watch=true" in asked for asked in cluster.requests):
            time.sleep(0.05)
        made.on_kill()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with pytest.raises(AirflowException, match="wrote no outcome"):
        made.execute(context())
    killer.join(timeout=30)
    assert cluster.deleted == [cluster.created[0]["metadata"]["name"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "spark.kubernetes.file.upload.path",
            "^conf has no '.*upload.path': give a folder.*there$",
        ),
        ("spark.kubernetes.container.image", "^conf has no '.*image': give an image with Spark"),
    ],
)
def test_a_missing_setting_is_named(cluster, monkeypatch, tmp_path, setting, message):
    (tmp_path / "uploads").mkdir()
    made = operator(monkeypatch, tmp_path, cluster.url, conf={setting: None})
    with pytest.raises(AirflowFailException, match=message):
        made.execute(context())
    assert cluster.created == []


@pytest.fixture
def submit(monkeypatch, tmp_path):
    """spark-submit replaced: the driver fails and leaves no outcome."""

    def fail(hook, application="", **_):
        fail.commands.append(hook._build_spark_submit_command(application))
        raise AirflowException("Kubernetes spark exit code is: 1")

    fail.commands = []
    configure(KubernetesStandIn(port=1), tmp_path, monkeypatch)
    monkeypatch.setattr(
        "airflow.providers.apache.spark.hooks.spark_submit.SparkSubmitHook.submit", fail
    )
    monkeypatch.setenv("AIRFLOW_HIVE_OPT_TASK_PID", "0")
    return fail


def test_a_driver_that_may_not_see_the_folder(submit, monkeypatch, tmp_path):
    made = operator(monkeypatch, tmp_path)
    with pytest.raises(AirflowException, match=r"exit code is: 1\. descriptor_path is a folder"):
        made.execute(context())
    monkeypatch.setenv("AIRFLOW_HIVE_OPT_TASK_PID", "0")
    client = operator(monkeypatch, tmp_path, extra={})  # the driver is on this machine
    with pytest.raises(AirflowException, match=r"exit code is: 1 \(it wrote no outcome"):
        client.execute(context())
    assert not any("driver.pod.name" in part for part in submit.commands[1])


def test_a_driver_that_nothing_could_stop_is_not_started(submit, monkeypatch, tmp_path):
    made = operator(monkeypatch, tmp_path, extra={"deploy-mode": "cluster"})
    with pytest.raises(AirflowFailException, match="names no namespace: add it to"):
        made.execute(context())
    for variable, value in (("IN_CLUSTER", "True"), ("CONFIG_FILE", str(tmp_path / "none"))):
        with monkeypatch.context() as changed:
            changed.setenv(f"AIRFLOW__KUBERNETES_EXECUTOR__{variable}", value)
            with pytest.raises(AirflowFailException, match="can't stop the driver. Set in_cluster"):
                operator(monkeypatch, tmp_path).execute(context())
    assert submit.commands == []


@needs_resumption
@pytest.mark.parametrize("extra", [CLUSTER_MODE, {"namespace": NAMESPACE}])
def test_a_driver_that_no_retry_could_find_is_not_started(submit, monkeypatch, tmp_path, extra):
    made = operator(monkeypatch, tmp_path, extra=extra, durable=True)
    with pytest.raises(AirflowFailException, match="durable=True on Kubernetes needs"):
        made.execute(context())
    assert submit.commands == []


@pytest.mark.parametrize(
    "connection",
    [
        {"conn_type": "spark", "host": "k8s://https://kubernetes.example.com"},
        {"conn_type": "k8s", "host": "kubernetes.example.com"},
    ],
)
def test_without_airflows_provider_for_kubernetes(monkeypatch, tmp_path, connection):
    monkeypatch.setattr(connections, "HAS_KUBERNETES_PROVIDER", False)
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps(connection))
    with pytest.raises(AirflowFailException, match="Kubernetes provider is not installed"):
        connections.deployment_of("cluster")


def test_airflows_own_connection_to_kubernetes_names_no_spark(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps({"conn_type": "kubernetes"}))
    with pytest.raises(AirflowFailException, match="is of the type 'kubernetes'"):
        connections.deployment_of("cluster")


@needs_resumption
def test_a_deferred_task_follows_its_pod_and_a_stop_deletes_it(cluster, monkeypatch, tmp_path):
    """spark-submit is replaced here: it creates the pod that the operator names."""
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.providers.common.compat.sdk import TaskDeferred

    from tests.operators.test_application_trigger import event_of, killed

    def submit(hook, application="", **_):
        command = hook._build_spark_submit_command(application)
        assert "spark.kubernetes.submission.waitAppCompletion=false" in command
        jobs.append(read_job(UPath(command[-1])))
        name = hook._kubernetes_driver_pod
        pod = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": IMAGE}]}}
        cluster.objects[(NAMESPACE, "pods", name)] = {**pod, "status": {"phase": "Running"}}

    def deferred(found):
        with pytest.raises(TaskDeferred) as raised:
            operator(monkeypatch, tmp_path, cluster.url, deferrable=True).execute(found)
        trigger = raised.value.trigger
        trigger.poll_interval = 0.01
        return trigger, raised.value.kwargs

    jobs: list = []
    monkeypatch.setattr(SparkSubmitHook, "submit", submit)
    trigger, kwargs = deferred(found := context(store={}))
    namespace, _, name = trigger.application_id.partition(":")
    assert (trigger.cluster, namespace) == ("kubernetes", NAMESPACE)
    cluster.finish(cluster.objects[(NAMESPACE, "pods", name)], "Succeeded", 0)
    write_outcome(replace(DONE, token=jobs[0].token), UPath(jobs[0].path))
    ran = tmp_path / "ran"
    options = {"deferrable": True, "post_submit_commands": [f"touch {ran}"]}
    made = operator(monkeypatch, tmp_path, cluster.url, **options)
    assert made.resume(found, event=event_of(trigger), **kwargs)["kept"] == 1
    assert ran.exists()

    trigger, _ = deferred(context(store={}))
    killed(trigger, "failed")
    assert cluster.deleted == [trigger.application_id.partition(":")[2]]
    assert event_of(trigger)["how"] == "lost"
