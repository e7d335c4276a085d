"""What a run pruned, from its descriptor and its report, as text or as a page."""

from __future__ import annotations

import sys
from datetime import datetime, timezone
from pathlib import Path

from upath import UPath

from airflow_hive_opt.documents.descriptor import Descriptor, StoragePath, load
from airflow_hive_opt.documents.descriptor_text import descriptor_to_text
from airflow_hive_opt.documents.figures import figures_of
from airflow_hive_opt.documents.report import (
    StoredReport,
    descriptor_summary,
    read_report,
    report_path,
)
from airflow_hive_opt.documents.storage import NothingThereError
from airflow_hive_opt.pages.html_file import html_file
from airflow_hive_opt.pages.instance import Known, instance_of, partitions_of
from airflow_hive_opt.pages.task_run import InstanceKey, TaskRun


def report(path: str, html: Path | None) -> None:
    """Prints the report of the run whose descriptor is at ``path``, or writes it to ``html``.

    Raises ``DescriptorError``, ``OSError``, ``ValueError`` and :class:`NotBuiltError`.
    """
    at: StoragePath = UPath(path)
    descriptor = load(at)
    if html is None:
        print(descriptor_to_text(descriptor))
        return
    known = _known(at, descriptor)
    lists = [partitions_of(target, "", 0, None) for target in descriptor.targets]
    html.write_text(html_file(instance_of(known), lists, "instance"), encoding="utf-8")
    print(f"written to {html}", file=sys.stderr)


def _known(at: StoragePath, descriptor: Descriptor) -> Known:
    stored = _report(at)
    summary = stored.summary if stored else descriptor_summary(descriptor, str(at))
    created = datetime.fromisoformat(descriptor.created)
    key, try_number = _place(at)
    run = TaskRun(
        key,
        figures=figures_of(summary),
        logical_date=None,
        run_after=created.astimezone(timezone.utc),
        try_number=try_number,
        state=None,
        start_date=created,
        duration=None,
    )
    return Known(run, {"return_value": summary}, {}, descriptor, stored, "there", "")


def _report(at: StoragePath) -> StoredReport | None:
    try:
        return read_report(report_path(at))
    except NothingThereError:
        return None


def _place(at: StoragePath) -> tuple[InstanceKey, int]:
    """The ids and the try in an attempt's path, ``dag/run/task/map index/try.json``.

    For any other path, only its name. Characters that paths forbid have been replaced in the ids.
    """
    *_, index, _ = ("", *at.parts)
    if len(at.parts) >= 5 and at.stem.isdigit() and index.lstrip("-").isdigit():
        dag_id, run_id, task_id = at.parts[-5:-2]
        return InstanceKey(dag_id, task_id, run_id, int(index)), int(at.stem)
    return InstanceKey("", at.name, "", -1), 1
