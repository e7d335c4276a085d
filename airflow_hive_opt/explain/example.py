"""A function that shows where partition lists are made, for the doctests of this package."""

from __future__ import annotations

from airflow_hive_opt.explain.partition_sink import place_sinks
from airflow_hive_opt.hive.compiler import compile_statement
from airflow_hive_opt.pruning.plan import plan
from airflow_hive_opt.statement.example_catalog import CATALOG
from airflow_hive_opt.statement.settings import Settings


def lists(sql: str) -> str:
    """Returns the stages that make and read partition lists, in nonstrict mode."""
    settings = Settings.of({"hive.mapred.mode": "nonstrict"})
    stages = compile_statement(sql, CATALOG, settings).stages
    return "\n".join(
        f"{sink.local_work.name} {sink.local_work.kind}: partitions of {sink.scan.name} by "
        f"{', '.join(alias for source in sink.sources for alias in source.aliases)}\n"
        f"{sink.job.name} {sink.job.kind}: {sink.scan.name} reads the list of "
        f"{sink.local_work.name}"
        for sink in place_sinks(stages, plan(sql, CATALOG).decisions)
    )
