"""The tables and partitions that a run read and wrote, as OpenLineage facets.

Imported only if the OpenLineage provider calls it; that provider is optional.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attr
from airflow.providers.openlineage import conf as openlineage_conf
from airflow.providers.openlineage.extractors import OperatorLineage
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    RunFacet,
    base_subset_dataset,
    external_query_run,
    sql_job,
)

from airflow_hive_opt.documents.descriptor import DescriptorError, load
from airflow_hive_opt.documents.partitions_read import PartitionsRead, partitions_read
from airflow_hive_opt.metastores.partition_names import partition_name
from airflow_hive_opt.provider.airflow_compat import ObjectStoragePath
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.tables import Tables, tables_of

log = logging.getLogger(__name__)
MOST_PARTITIONS = 1000
"""A longer list would make an event of megabytes; ``hiveOpt_pruning`` has its length."""

_URIS = ("spark.hadoop.hive.metastore.uris", "spark.hive.metastore.uris", "hive.metastore.uris")


@attr.define
class PruningRunFacet(RunFacet):
    """Run facet ``hiveOpt_pruning``: partitions kept of total, and each scan's decision."""

    kept: int
    total: int
    reason: str
    descriptor: str
    decisions: list[dict[str, Any]]


def lineage_of(
    sql: str,
    summary: Mapping[str, Any] | None,
    joined: bool,
    namespace: str | None,
    database: str = "default",
    temporary: Collection[str] = (),
) -> OperatorLineage[Any, Any]:
    """The lineage of a run.

    :param sql: the user's statement, rendered.
    :param summary: the run's result, see ``Report.summary``; ``None`` if it has none.
    :param joined: whether the statement ran. A statement that did not run reads and writes nothing.
    :param namespace: the tables' namespace; ``None`` for OpenLineage's default.
    :param database: the database of tables without a database name.
    :param temporary: names of temporary views, which are no datasets.
    """
    job_facets = {"sql": sql_job.SQLJobFacet(query=sql)}
    if summary is None:
        return OperatorLineage(job_facets=job_facets)
    run_facets: dict[str, RunFacet] = {
        "hiveOpt_pruning": PruningRunFacet(
            kept=summary["kept"],
            total=summary["total"],
            reason=summary["reason"],
            descriptor=summary["uri"],
            decisions=list(summary["decisions"]),
        )
    }
    if application := summary.get("application_id"):
        run_facets["externalQuery"] = external_query_run.ExternalQueryRunFacet(
            externalQueryId=application, source="spark"
        )
    if not joined:
        return OperatorLineage(run_facets=run_facets, job_facets=job_facets)
    tables = _tables(sql, summary, database, temporary)
    subsets = _subsets(summary["uri"])
    namespace = namespace or openlineage_conf.namespace()
    return OperatorLineage(
        inputs=[
            InputDataset(namespace, name, inputFacets=_input_facets(subsets.get(name)))
            for name in tables.reads
        ],
        outputs=[OutputDataset(namespace, name) for name in tables.writes],
        run_facets=run_facets,
        job_facets=job_facets,
    )


def merged(parts: Sequence[OperatorLineage[Any, Any]]) -> OperatorLineage[Any, Any]:
    """The lineage of a task that has run these statements, one after the other.

    A dataset that several of them read has the partitions of all, or none if one reads it whole.
    The facets of the run are those of the last statement with figures, with the sums of all.
    """
    inputs: dict[tuple[str, str], InputDataset] = {}
    outputs = {(each.namespace, each.name): each for part in parts for each in part.outputs}
    for each in (each for part in parts for each in part.inputs):
        key = each.namespace, each.name
        inputs[key] = _with_partitions_of(inputs[key], each) if key in inputs else each
    run_facets = {name: facet for part in parts for name, facet in part.run_facets.items()}
    pruning = [
        facet
        for part in parts
        if isinstance(facet := part.run_facets.get("hiveOpt_pruning"), PruningRunFacet)
    ]
    if pruning:
        run_facets["hiveOpt_pruning"] = PruningRunFacet(
            kept=sum(each.kept for each in pruning),
            total=sum(each.total for each in pruning),
            reason=pruning[-1].reason,
            descriptor=pruning[-1].descriptor,
            decisions=[decision for each in pruning for decision in each.decisions],
        )
    sql = ";\n".join(part.job_facets["sql"].query for part in parts)
    job_facets = {"sql": sql_job.SQLJobFacet(query=sql)}
    return OperatorLineage([*inputs.values()], [*outputs.values()], run_facets, job_facets)


def _with_partitions_of(one: InputDataset, other: InputDataset) -> InputDataset:
    subsets: list[Any] = [(each.inputFacets or {}).get("subset") for each in (one, other)]
    if None in subsets:
        return InputDataset(one.namespace, one.name)
    found = {
        partition.identifier: partition
        for subset in subsets
        for partition in subset.inputCondition.partitions
    }
    if len(found) > MOST_PARTITIONS:
        return InputDataset(one.namespace, one.name)
    return InputDataset(one.namespace, one.name, inputFacets=_subset([*found.values()]))


def namespace_of(conf: Mapping[str, Any]) -> str | None:
    """The namespace of a metastore's tables, from Spark's settings; ``None`` if they name none.

    >>> namespace_of({"spark.hadoop.hive.metastore.uris": "thrift://a:9083,thrift://b:9083"})
    'hive://a:9083'
    """
    uris = next((str(conf[name]) for name in _URIS if conf.get(name)), "")
    first = uris.partition(",")[0].strip().removeprefix("thrift://")
    return f"hive://{first}" if first else None


def _tables(
    sql: str, summary: Mapping[str, Any], database: str, temporary: Collection[str]
) -> Tables:
    """The tables that the text names, and the pruned tables of the views that it names."""
    try:
        named = tables_of(sql, database, temporary)
    except (PlanError, RecursionError):
        named = Tables((), ())
    scanned = {found["table"].lower() for found in summary["decisions"] if found["table"]}
    return Tables(tuple(sorted(scanned.union(named.reads))), named.writes)


def _subsets(uri: str) -> dict[str, PartitionsRead]:
    try:
        return partitions_read(load(ObjectStoragePath(uri)))
    except (DescriptorError, ValueError, ImportError) as error:
        log.warning(
            "lineage events have no partitions, because the descriptor %s can't be read: %s",
            uri,
            error,
        )
        return {}


def _input_facets(read: PartitionsRead | None) -> dict[str, Any]:
    if read is None or len(read.values) > MOST_PARTITIONS:
        return {}
    partitions = [
        base_subset_dataset.Partition(
            dimensions=dict(zip(read.columns, values, strict=True)),
            identifier=partition_name(read.columns, values),
        )
        for values in read.values
    ]
    return _subset(partitions)


def _subset(partitions: list[Any]) -> dict[str, Any]:
    condition = base_subset_dataset.PartitionSubsetCondition(partitions=partitions)
    return {"subset": base_subset_dataset.InputSubsetInputDatasetFacet(inputCondition=condition)}
