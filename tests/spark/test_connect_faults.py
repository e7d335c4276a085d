"""A Spark Connect server that does not answer: the error message, and one wait only."""

import sys

import grpc
import pytest
from pyspark.sql.connect.client.retries import Retrying

from airflow_hive_opt.spark.session.connect import remote_session
from airflow_hive_opt.spark.session.connect_retries import BoundedRetries
from airflow_hive_opt.spark.session.java import SparkStartError
from tests.services.processes import HOST, free_port


def test_a_server_that_did_not_answer_is_not_waited_for_again():
    class Unavailable(grpc.RpcError):
        def code(self):
            return grpc.StatusCode.UNAVAILABLE

        def trailing_metadata(self):
            return None

    policy, waits = BoundedRetries(max_retries=2), []
    for expected in (2, 2):
        with pytest.raises(Unavailable):
            for attempt in Retrying(policy, sleep=waits.append):
                with attempt:
                    raise Unavailable
        assert len(waits) == expected


def test_a_server_that_is_not_there_is_named_without_its_token():
    port = free_port()
    with (
        pytest.raises(SparkStartError, match=rf"answers at {HOST}:{port}: ") as error,
        remote_session(f"sc://{HOST}:{port}/;token=secret;use_ssl=false", {}),
    ):
        pass
    assert "secret" not in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_packages_are_named_by_their_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql.connect.session", None)
    with (
        pytest.raises(SparkStartError, match=r"airflow-hive-opt\[spark-submit,connect\]"),
        remote_session("sc://h", {}),
    ):
        pass
