"""The routes of the JSON API.

Airflow does not protect a plugin's application. Every route therefore requires the permission to
read XComs, whose figures it shows: of the DAG in its path, or of each DAG in a list.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Collection
from datetime import datetime, timedelta, timezone
from typing import Annotated, Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api import security
from airflow.models.dag import DagModel
from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import AwareDatetime

from airflow_hive_opt.documents.descriptor import Descriptor
from airflow_hive_opt.links.pages import DESCRIPTOR_KEY
from airflow_hive_opt.pages.absent import why_nothing
from airflow_hive_opt.pages.history import history, overview
from airflow_hive_opt.pages.instance import Known, instance_of, partitions_of
from airflow_hive_opt.pages.models import (
    Instance,
    Note,
    Overview,
    PartitionPage,
    ReasonCode,
    TaskHistory,
    Whereabouts,
)
from airflow_hive_opt.pages.sums import sums_of
from airflow_hive_opt.plugins import queries
from airflow_hive_opt.plugins.access import LOGIN, MAY_READ
from airflow_hive_opt.plugins.found import FoundTarget, MapIndex, missing
from airflow_hive_opt.plugins.stored import NotShownError, descriptor_at, report_of
from airflow_hive_opt.provider.airflow_compat import conf
from airflow_hive_opt.pruning.advice import advice_on
from airflow_hive_opt.pruning.reasons import Reason

DAYS = 30
_IN_A_PAGE = 100
_MOST = 1_000
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")

router = APIRouter(prefix="/api")
_INSTANCE = "/dags/{dag_id}/runs/{run_id}/tasks/{task_id}"


@router.get("/tasks", dependencies=LOGIN)
def tasks(
    session: SessionDep,
    user: security.GetUserDep,
    dag_id: str | None = None,
) -> Overview:
    """The tasks that ran in the last 30 days, of all DAGs that the user may read, or of one."""
    since = datetime.now(timezone.utc) - timedelta(days=DAYS)
    readable = get_auth_manager().get_authorized_dag_ids(user=user, method="GET")
    dags = {dag for dag in readable if dag_id in (None, dag)}
    if dag_id is not None and not dags:
        raise missing(f"not found: there is no DAG {dag_id[:250]} that you may read")
    sums = sums_of(queries.runs_since(session, since, dags))
    permitted = _with_xcom_access({dag for dag, _ in sums}, user)
    shown = [of_task for (dag, _), of_task in sums.items() if dag in permitted]
    keys = [of_task.last.key for of_task in shown if of_task.last]
    return overview(DAYS, shown, queries.runs_with_keys(session, keys))


@router.get("/reasons", dependencies=LOGIN)
def reasons() -> list[ReasonCode]:
    """All reason codes, with what to do about them."""
    return [
        ReasonCode(code=each, sentence=each.sentence, advice=advice_on(each)) for each in Reason
    ]


@router.get("/dags/{dag_id}/tasks/{task_id}", dependencies=MAY_READ)
def task(
    dag_id: str,
    task_id: str,
    session: SessionDep,
    before: AwareDatetime | None = None,
    before_run_id: Annotated[str, Query(max_length=250)] = "",
    before_map_index: MapIndex = -1,
    limit: Annotated[int, Query(ge=1, le=_MOST)] = _IN_A_PAGE,
) -> TaskHistory:
    """The runs of a task, newest first.

    ``before``, ``before_run_id`` and ``before_map_index`` are the ``run_after``, the ID and the map
    index of the last run of the page before.
    """
    last = None if before is None else (before, before_run_id, before_map_index)
    found = queries.runs_of_task(session, dag_id, task_id, last, limit + 1)
    note = None
    if not found and last is None:
        known = queries.operator_of(session, dag_id, task_id)
        if known is None:
            raise missing(f"not found: no run of the DAG {dag_id} has a task {task_id}")
        note = why_nothing(*known)
    return history(dag_id, task_id, found[:limit], found[limit:], note)


@router.get(_INSTANCE, dependencies=MAY_READ)
def instance(
    dag_id: str, run_id: str, task_id: str, session: SessionDep, map_index: MapIndex = -1
) -> Instance | Note:
    """What one task instance pruned, and why; or why there is nothing to show."""
    at = dag_id, run_id, task_id, map_index
    run = queries.run_of(session, *at)
    if run is None:
        task = queries.operator_of(session, dag_id, task_id, run_id, map_index)
        if task is None:
            raise missing(f"not found: the run {run_id} of the DAG {dag_id} has no task {task_id}")
        return Note(note=why_nothing(*task))
    xcoms = queries.xcoms_of(session, *at)
    descriptor: Descriptor | None
    where: Whereabouts = "there"
    why_not = ""
    try:
        descriptor = descriptor_at(str(xcoms.get(DESCRIPTOR_KEY, "")), dag_id, run_id)
    except NotShownError as error:
        descriptor, where, why_not = None, error.where, str(error)
    return instance_of(
        Known(
            run,
            xcoms,
            queries.rendered_fields(session, *at),
            descriptor,
            report_of(*at, run.try_number),
            where,
            conf.get("hive_opt", "spark_ui_url", fallback=""),
            why_not,
        )
    )


@router.get(f"{_INSTANCE}/partitions", dependencies=MAY_READ)
def partitions(
    target: FoundTarget,
    search: Annotated[str, Query(max_length=500)] = "",
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST)] = _IN_A_PAGE,
) -> PartitionPage:
    """The partitions of a pruned scan whose names contain ``search``."""
    return partitions_of(target, search, offset, limit)


@router.get(f"{_INSTANCE}/partitions.json", dependencies=MAY_READ)
def partitions_as_json(target: FoundTarget) -> Response:
    """All partitions of a pruned scan, as a file."""
    page = partitions_of(target, "", 0, None)
    listed = [found.model_dump() for found in page.partitions]
    return _file(json.dumps(listed, indent=1), "application/json", "partitions.json")


@router.get(f"{_INSTANCE}/partitions.csv", dependencies=MAY_READ)
def partitions_as_csv(target: FoundTarget) -> Response:
    """All partitions of a pruned scan, as a file; NULL is empty."""
    page = partitions_of(target, "", 0, None)
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow([*map(_safe, page.columns), "partition", "location", "rows", "bytes"])
    for found in page.partitions:
        texts = map(_safe, (*found.values, found.name, found.location))
        lines.writerow([*texts, found.rows, found.bytes])
    return _file(text.getvalue(), "text/csv", "partitions.csv")


def _with_xcom_access(dag_ids: Collection[str], user: Any) -> set[str]:
    manager, teams = get_auth_manager(), _teams(list(dag_ids))
    return {
        dag_id
        for dag_id in dag_ids
        if manager.is_authorized_dag(
            method="GET",
            access_entity=DagAccessEntity.XCOM,
            details=DagDetails(id=dag_id, **teams.get(dag_id, {})),
            user=user,
        )
    }


def _teams(dag_ids: list[str]) -> dict[str, dict[str, Any]]:
    """The team of each DAG that belongs to one; versions of Airflow without teams have none."""
    teams_of = getattr(DagModel, "get_dag_id_to_team_name_mapping", None)
    found = teams_of(dag_ids) if teams_of and dag_ids else {}
    return {dag_id: {"team_name": team} for dag_id, team in found.items()}


def _safe(value: str | None) -> str:
    """The value, empty for NULL; a quote precedes text that a spreadsheet would run."""
    text = value or ""
    is_formula = text.startswith(("=", "+", "-", "@", "\t", "\r")) and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def _file(text: str, media_type: str, name: str) -> Response:
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    data = text.encode(errors="backslashreplace")
    return Response(data, media_type=f"{media_type}; charset=utf-8", headers=disposition)
