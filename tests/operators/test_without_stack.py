"""Airflow's log of a task that fails with a message for people."""

from __future__ import annotations

import sys

import pytest

from airflow_hive_opt.provider.airflow_compat import AirflowFailException
from airflow_hive_opt.provider.without_stack import without_stack
from tests.versions.installed import needs_airflow


@pytest.fixture
def logged():
    """The events of a log that is configured as Airflow's, in the order of its processors."""
    import structlog

    before, events = structlog.get_config(), []

    def keep(_logger, _method, event):
        events.append(dict(event))
        raise structlog.DropEvent

    structlog.configure(processors=[keep], cache_logger_on_first_use=False)
    yield events
    structlog.configure(**before)


def fail(error):
    """Logs ``error`` as Airflow's task runner does."""
    import structlog

    try:
        raise error
    except AirflowFailException:
        structlog.get_logger(logger_name="task").exception("Task failed with exception")


@needs_airflow("3.0")
def test_an_exception_that_is_marked_complete_is_logged_without_a_stack(logged):
    for _ in range(2):
        fail(without_stack(AirflowFailException("limit 1")))
    assert [event["event"] for event in logged] == ["Task failed with exception: limit 1"] * 2
    assert not any("exc_info" in event for event in logged)
    assert sys.exc_info() == (None, None, None)


@needs_airflow("3.0")
def test_other_exceptions_are_logged_with_their_stack(logged):
    without_stack(AirflowFailException("of another task"))
    fail(AirflowFailException("a defect"))
    (event,) = logged
    assert event["event"] == "Task failed with exception"
    assert event["exc_info"]
