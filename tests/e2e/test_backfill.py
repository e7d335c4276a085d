"""A backfill of five days, three at a time, and all of them again.

Every day has its own rows, and every attempt its own list.
"""

from __future__ import annotations

from datetime import date

from airflow_hive_opt.documents.descriptor import decode
from airflow_hive_opt.provider.attempts import safe_part
from tests.e2e.backfill import DAYS, backfill

FIRST_DAY = (date(2000, 11, 1) - date(2000, 1, 1)).days


def test_a_backfill_and_its_reprocessing_give_plain_sparks_rows(airflow, plain, backfilled):
    expected = [
        (*row, day) for day in DAYS for row in plain.example("sales_of_the_day.sql", ds=day)
    ]
    assert len({row[1] for row in expected}) > 1  # days can be told apart by their rows
    assert sorted(written(plain)) == sorted(expected)
    assert attempts(airflow) == dict.fromkeys(DAYS, 1)
    plain.session.sql(f"ALTER TABLE sales_by_day DROP PARTITION (day = '{DAYS[-1]}')")
    backfill(airflow, "completed")
    assert sorted(written(plain)) == sorted(expected)
    assert attempts(airflow) == dict.fromkeys(DAYS, 2)


def attempts(airflow):
    """By day its run's attempts, each of which has left a list of that day's partition alone."""
    found = {}
    for run in airflow.runs("backfill_by_day", "backfill"):
        day = run["logical_date"][:10]
        partition = str(FIRST_DAY + DAYS.index(day))
        folder = airflow.descriptors / "backfill_by_day" / safe_part(run["dag_run_id"])
        task = airflow.task("backfill_by_day", run["dag_run_id"], "sales_of_the_day")
        found[day] = task["try_number"]
        for number in range(1, found[day] + 1):
            path = folder / "sales_of_the_day" / "-1" / f"{number}.json"
            (target,) = decode(path.read_bytes()).targets
            assert [each.values for each in target.partitions] == [(partition,)]
    return found


def written(plain):
    """What the days of the backfill have in the table."""
    return [row for row in plain.table("sales_by_day") if row[-1] in DAYS]
