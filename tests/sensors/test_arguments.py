"""Arguments of a sensor that would have no effect: refused where the DAG is parsed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from airflow.providers.common.compat.sdk import DAG, conf

from airflow_hive_opt.sensors.partition_descriptor import PartitionDescriptorSensor
from airflow_hive_opt.sensors.required_partitions import RequiredPartitionsSensor


def required(**arguments):
    return RequiredPartitionsSensor(**{"task_id": "wait", "sql": "SELECT 1", **arguments})


def descriptor(**arguments):
    return PartitionDescriptorSensor(**{"task_id": "wait", "uri": "/1.json", **arguments})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_partitions", 3),
        ("max_bytes", 10**9),
        ("on_empty", "skip"),
        ("on_no_prune", "run"),  # the operator's default has no effect either
        ("partition_keys_of", "db.t"),
        ("show_rows", 0),
        ("durable", True),
    ],
)
def test_a_sensor_refuses_arguments_of_the_join(name, value):
    with pytest.raises(TypeError, match=f"{name} can't be set: the sensor does not run"):
        required(**{name: value})


def test_the_error_names_all_arguments_that_a_sensor_refuses():
    with pytest.raises(TypeError, match="max_partitions, on_empty can't be set"):
        required(on_empty="fail", max_partitions=3)


@pytest.mark.parametrize("make", [required, descriptor])
@pytest.mark.parametrize(
    "argument",
    [{"mode": "reschedule"}, {"exponential_backoff": True}, {"max_wait": 5}, {"silent_fail": True}],
    ids=lambda argument: next(iter(argument)),
)
def test_a_deferrable_sensor_refuses_arguments_of_pokes(make, argument, monkeypatch):
    (name,) = argument
    with pytest.raises(TypeError, match=f"{name} can't be set with deferrable=True"):
        make(**argument, deferrable=True)
    assert not make(**argument, deferrable=False).deferrable
    # the configuration is for all sensors of an Airflow, and may change
    monkeypatch.setattr(conf, "getboolean", lambda *_, **__: True)
    assert make(**argument).deferrable


def test_python_functions_may_be_a_template(tmp_path):
    made = required(python_functions="{{ params.trusted }}", descriptor_path=str(tmp_path))
    instance = SimpleNamespace(dag_id="d", run_id="r", task_id="t", map_index=-1, try_number=1)
    for trusted in (True, False):
        context = {"ti": instance, "params": {"trusted": trusted}}
        made.python_functions = "{{ params.trusted }}"
        made.render_template_fields(context)
        assert made.job(context).bounds.python_functions is trusted
    with pytest.raises(ValueError, match="python_functions must be true or false, not 1"):
        required(python_functions=1)


def test_a_descriptor_sensor_refuses_parameters_without_sql():
    with pytest.raises(ValueError, match="parameters are those of a statement: set sql too"):
        descriptor(parameters={"a": 1})
    assert descriptor(parameters={"a": 1}, sql="SELECT :a").parameters == {"a": 1}


def test_a_sensor_ignores_gates_in_the_default_args_of_a_dag():
    with DAG("d", default_args={"max_partitions": 3, "show_rows": 0, "mode": "reschedule"}):
        assert required(deferrable=True).mode == "reschedule"
