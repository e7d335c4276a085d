"""Another writer that changes a table while a local task runs."""

from __future__ import annotations

from airflow_hive_opt.spark.local_task import fixed_snapshots


def changed_meanwhile(monkeypatch, change, after=False):
    """Another writer changes the table once, before the snapshot is fixed or after that."""
    left, step = [change], fixed_snapshots.fixed_snapshot

    def changed(*arguments):
        if not after and left:
            left.pop()()
        found = step(*arguments)
        if left:
            left.pop()()
        return found

    monkeypatch.setattr(fixed_snapshots, "fixed_snapshot", changed)
