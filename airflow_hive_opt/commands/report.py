"""``airflow-hive-opt report``: what a run pruned."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from airflow_hive_opt.commands.arguments import FAILED, add_verbose


def add(commands: Any) -> None:
    """Adds the command to the subparsers."""
    command = commands.add_parser("report", help="show what a run pruned, from its descriptor")
    command.add_argument("path", metavar="PATH", help="the descriptor: a file or URI")
    command.add_argument("--html", type=Path, metavar="FILE", help="write a page into this file")
    add_verbose(command)
    command.set_defaults(run=_report)


def _report(options: argparse.Namespace) -> int:
    from airflow_hive_opt.commands.stored_report import report
    from airflow_hive_opt.documents.storage import DescriptorError
    from airflow_hive_opt.pages.html_file import NotBuiltError

    try:
        report(options.path, options.html)
    except (DescriptorError, NotBuiltError, OSError, ValueError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    return 0
