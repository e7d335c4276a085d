"""``airflow-hive-opt prune`` and ``run``: the local task alone, or the whole run."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from airflow_hive_opt.commands.arguments import (
    BAD_INPUT,
    UsageError,
    add_statement,
    pairs,
    statement_of,
    switches_of,
    whole_log,
)
from airflow_hive_opt.commands.statement_check import check_statement, show_error
from airflow_hive_opt.statement.errors import PlanError


def add(commands: Any) -> None:
    """Adds the two commands to the subparsers."""
    prune = commands.add_parser("prune", help="collect keys, write the partition descriptor")
    prune.add_argument("--descriptor", metavar="URI", help="where to write the descriptor")
    prune.set_defaults(run=partial(_run, stages="local task"), rows=0)
    run = commands.add_parser("run", help="prune, then run the statement")
    run.add_argument("--descriptor", metavar="URI", help="where to write the descriptor")
    run.add_argument("--rows", type=int, default=20, help="rows of a SELECT to print (20)")
    run.set_defaults(run=partial(_run, stages="both"))
    for command in (prune, run):
        add_statement(command)
        command.add_argument("--max-keys", type=int, default=100_000)
        command.add_argument("--max-key-bytes", type=int, default=16 << 20)
        command.add_argument(
            "--python-functions",
            action=argparse.BooleanOptionalAction,
            help="use keys that depend on Python functions (off)",
        )
        command.add_argument(
            "--planning-seconds",
            metavar="N",
            help="seconds of planning after which the statement passes through (2)",
        )
        command.add_argument(
            "--hold-snapshots",
            action="store_true",
            help="read small Iceberg and Delta tables at the snapshots from which their keys come",
        )
        command.add_argument(
            "--index-path", default="", metavar="PATH", help="a folder or URI of key indexes to use"
        )
        command.add_argument(
            "--conf", action="append", default=[], metavar="K=V", help="a Spark setting"
        )


def _run(options: argparse.Namespace, stages: str) -> int:
    sql, parameters = statement_of(options), pairs(options.param)
    try:
        check_statement(sql, parameters)
    except PlanError as error:
        show_error(str(error), sql)
        return BAD_INPUT
    from airflow_hive_opt.commands.embedded import run_embedded
    from airflow_hive_opt.documents.job import Job, Stages

    try:
        job = Job(
            sql,
            options.descriptor or "",
            Stages(stages),
            parameters=parameters,
            hive_conf=pairs(options.set),
            switches=switches_of(options),
            max_keys=options.max_keys,
            max_key_bytes=options.max_key_bytes,
            show_rows=options.rows + 1,
            hold_snapshots=options.hold_snapshots,
            index_path=options.index_path,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    conf = {**whole_log(options), **pairs(options.conf)}
    return run_embedded(job, options.warehouse, conf, options.rows)
