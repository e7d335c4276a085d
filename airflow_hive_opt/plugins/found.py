"""Finds the objects that a request names, or answers 404 with the reason."""

from __future__ import annotations

from typing import Annotated

from airflow.api_fastapi.common.db.common import SessionDep
from fastapi import Depends, HTTPException, Query, status

from airflow_hive_opt.documents.descriptor import Descriptor, Target
from airflow_hive_opt.links.pages import DESCRIPTOR_KEY
from airflow_hive_opt.plugins import queries
from airflow_hive_opt.plugins.stored import NotShownError, descriptor_at

MapIndex = Annotated[int, Query(ge=-1)]


def missing(why: str) -> HTTPException:
    """The error that answers 404."""
    return HTTPException(status.HTTP_404_NOT_FOUND, why)


def _descriptor(
    dag_id: str, run_id: str, task_id: str, session: SessionDep, map_index: MapIndex = -1
) -> Descriptor:
    """The task instance's descriptor. Only the server's log shows errors of storage."""
    xcoms = queries.xcoms_of(session, dag_id, run_id, task_id, map_index)
    if DESCRIPTOR_KEY not in xcoms:
        raise missing(
            "this task instance has written no partition list: it ended before the end of its "
            "local task, it is another kind of task, or Airflow has deleted its XComs"
        )
    try:
        return descriptor_at(str(xcoms[DESCRIPTOR_KEY]), dag_id, run_id)
    except NotShownError as error:
        raise missing(str(error)) from None


FoundDescriptor = Annotated[Descriptor, Depends(_descriptor)]
"""The descriptor of the task instance that the request names."""


def _target(
    descriptor: FoundDescriptor,
    scan: Annotated[int, Query(ge=0, description="the start of the scan's reference")],
) -> Target:
    for target in descriptor.targets:
        if target.scan.position[0] == scan:
            return target
    raise missing(f"no pruned scan of this run starts at character {scan} of the statement")


FoundTarget = Annotated[Target, Depends(_target)]
"""The pruned scan that the request names."""
