"""Records how a session reads a statement; a descriptor is valid only for that reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_hive_opt.documents.binding import (
    CASE_SENSITIVE,
    TIME_ZONE,
    WORKER,
    Binding,
    OtherSession,
    check_same,
    that_change_values,
)
from airflow_hive_opt.documents.descriptor import Descriptor
from airflow_hive_opt.spark.catalog.resolved_names import Names, ResolvedNames
from airflow_hive_opt.spark.catalog.session_catalog import SessionCatalog
from airflow_hive_opt.spark.session.session_conf import all_set, in_effect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Settings whose defaults differ between machines or versions of Spark: the values in effect count.
_IN_EFFECT = (
    TIME_ZONE,
    "spark.sql.ansi.enabled",
    CASE_SENSITIVE,
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.timestampType",
)


def binding(session: SparkSession, catalog: SessionCatalog, names: ResolvedNames) -> Binding:
    """Returns how the session reads the statement that has these names."""
    return Binding(
        session.catalog.currentCatalog(),
        session.catalog.currentDatabase(),
        catalog.default_location(),
        names.tables,
        {
            **that_change_values(all_set(session)),
            **{name: in_effect(session, name) for name in _IN_EFFECT},
        },
        names.functions,
        names.variables,
    )


def check_binding(
    session: SparkSession, catalog: SessionCatalog, sql: str, descriptor: Descriptor
) -> None:
    """Raises ``OtherSession`` for another session's descriptor, unless it prunes nothing."""
    if not (descriptor.targets or descriptor.row_filters or descriptor.statement):
        return
    if descriptor.binding is None:
        raise OtherSession(
            "the partition list is refused: it belongs to an application that also ran the join. "
            "Pass the output of a local task to this task"
        )
    here = binding(session, catalog, Names(session, catalog).resolve([sql]))
    if descriptor.binding.reader == WORKER:
        here = here.for_worker(descriptor.binding.calls)
    check_same(descriptor.binding, here)
