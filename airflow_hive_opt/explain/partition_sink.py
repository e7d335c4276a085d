"""The stages that make and read partition lists: HIVE-5119, steps 1 to 3, 5 and 6.

A job gets a sink in its LocalWork if three conditions hold: it joins in its mappers, it has no
backup plan (step 2), and it reads a big table that the keys of small tables can prune. Cascading
map joins over one big table share the sink. The scan of the big table reads the partition list at
prelaunch.

>>> from airflow_hive_opt.explain.example import lists
>>> print(lists('''
...     SELECT s.amount FROM sales s JOIN days d ON s.ds = d.ds JOIN src x ON s.ds = x.key'''))
Stage-1 LocalWork: partitions of s by d, x
Stage-2 MapReduce: s reads the list of Stage-1
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from airflow_hive_opt.hive.graph.operator_graph import MapJoin, TableScan
from airflow_hive_opt.hive.tasks import Task
from airflow_hive_opt.pruning.decisions import KeySource, ScanDecision
from airflow_hive_opt.statement.scan_ref import ScanRef


@dataclass(frozen=True)
class PartitionSink:
    """A partition list of ``scan``, which ``local_work`` makes and ``job`` reads.

    ``sources`` are the small tables whose rows reach the sink.
    """

    local_work: Task
    job: Task
    scan: ScanRef
    sources: tuple[KeySource, ...]


def place_sinks(
    stages: Iterable[Task], decisions: Sequence[ScanDecision]
) -> tuple[PartitionSink, ...]:
    """Returns one sink for each pruned big table of each job that joins in its mappers."""
    found = []
    pruned = {each.scan.position[0]: each for each in decisions if each.pruned}
    for job in stages:
        local_work = next((task for task in job.parents if task.kind == "LocalWork"), None)
        if local_work is None or job.branch_of is not None or local_work.branch_of is not None:
            continue
        for scan in job.mapped_scans():
            decision = None if scan.at is None else pruned.get(scan.at)
            if decision is None or scan.table is None or scan.table.name != decision.table.name:
                continue  # a view's scan is at the reference to the view
            if sources := _sources(job, decision):
                found.append(PartitionSink(local_work, job, decision.scan, sources))
    return tuple(found)


def _sources(job: Task, decision: ScanDecision) -> tuple[KeySource, ...]:
    """Returns the key sources of the scan that the job's LocalWork reads."""
    joins = any(isinstance(operator, MapJoin) for operator in job.operators())
    small = {part for local in job.local_scans() for part in _names(local)}
    return tuple(
        source
        for source in decision.sources
        if joins and any(alias in small for alias in source.aliases)
    )


def _names(scan: TableScan) -> set[str]:
    """Returns the aliases of a scan: its own alias and the aliases of subqueries around it."""
    return set(scan.path.split(":")) | {scan.alias}
