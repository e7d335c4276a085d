"""The backfill of the suite, with dates of long ago."""

from __future__ import annotations

from tests.services.airflow import Airflow, wait_for

DAYS = [f"2000-11-{day:02}" for day in range(1, 6)]
AT_ONCE = 3


def backfill(airflow: Airflow, reprocess: str) -> None:
    """Runs it to its end, which all of its runs reach well, never more of them than allowed."""
    asked = {
        "dag_id": "backfill_by_day",
        "from_date": f"{DAYS[0]}T00:00:00Z",
        "to_date": f"{DAYS[-1]}T00:00:00Z",
        "max_active_runs": AT_ONCE,
        "reprocess_behavior": reprocess,
    }
    number = airflow.ask("/api/v2/backfills", asked)["id"]
    at_once = set()

    def completed():
        states = [run["state"] for run in airflow.runs("backfill_by_day", "backfill")]
        at_once.add(states.count("running"))
        return airflow.ask(f"/api/v2/backfills/{number}")["completed_at"]

    wait_for(completed, seconds=900)
    assert max(at_once) == AT_ONCE
    assert {run["state"] for run in airflow.runs("backfill_by_day", "backfill")} == {"success"}
