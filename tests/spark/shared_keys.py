"""Runs with a key set, and what they did with it."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

from airflow_hive_opt.documents.job import Stages, Status
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.keys.key_query import KeyQuery
from tests.spark.stages import job_of

_ATTEMPTS = count()


def run(session, tmp_path, sql, **options):
    """The summary of a run, whose rows are those of plain Spark."""
    job = job_of(
        sql,
        path=str(tmp_path / f"{next(_ATTEMPTS)}.json"),
        show_rows=1000,
        **{"key_sets": str(tmp_path / "keys"), **options},
    )
    outcome = run_job(session, job)
    assert outcome.status is Status.DONE, outcome.message
    session._jsparkSession.sessionState().catalog().invalidateAllCachedTables()
    if sql.startswith("SELECT") and job.stages is Stages.BOTH:
        plain = session.sql(sql, args=dict(job.parameters)).collect()
        shown = [tuple("NULL" if v is None else str(v) for v in row) for row in plain]
        assert sorted(outcome.rows) == sorted(shown)
    return outcome.summary


def codes(summary):
    """The code of each key query of a run."""
    return [use["code"] for use in summary["key_sets"]]


def why(summary):
    """What the run said of its only key query."""
    (use,) = summary["key_sets"]
    return use["why"]


def aged(session, *names, seconds=100):
    """Makes the files of tables older, as those of most tables are."""
    for name in names:
        described = session.sql(f"DESCRIBE FORMATTED {name}").where("col_name = 'Location'").first()
        for file in Path(described[1].removeprefix("file:")).rglob("*"):
            if not file.name.startswith("."):
                changed = file.stat().st_mtime - seconds
                os.utime(file, (changed, changed))


def counted(monkeypatch):
    """A list of the sources whose key query Spark runs from now on."""
    found, read = [], KeyQuery.run

    def counting(query):
        found.append(query.source.name)
        return read(query)

    monkeypatch.setattr(KeyQuery, "run", counting)
    return found
