"""``airflow-hive-opt descriptors``: deletes the files of old attempts."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from airflow_hive_opt.commands.arguments import FAILED, UsageError, add_verbose


def add(commands: Any) -> None:
    """Adds the command to the subparsers."""
    descriptors = commands.add_parser("descriptors", help="manage stored descriptors")
    kinds = descriptors.add_subparsers(required=True, metavar="COMMAND")
    old = kinds.add_parser("delete", help="delete old descriptors")
    old.add_argument("root", metavar="PATH", help="the descriptor_path: a folder or URI")
    old.add_argument(
        "--older-than", required=True, metavar="AGE", help="the least age, such as 30d, 36h or 2w"
    )
    old.add_argument("--dry-run", action="store_true", help="only list the descriptors")
    add_verbose(old)
    old.set_defaults(run=_delete)


def _delete(options: argparse.Namespace) -> int:
    from datetime import datetime, timezone

    from upath import UPath

    from airflow_hive_opt.documents.cleaning import age, older_than

    try:
        limit = age(options.older_than)
        root = UPath(options.root)
        if not root.is_dir():
            raise UsageError(f"there is no folder {options.root}")
        count = 0
        for path in older_than(root, limit, datetime.now(timezone.utc)):
            count += 1
            if options.dry_run or options.verbose:
                print(path)
            if not options.dry_run:
                path.unlink(missing_ok=True)
    except (ValueError, ImportError) as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        print(f"error: {options.root}: {error}", file=sys.stderr)
        return FAILED
    print(f"{count} files {'would be ' if options.dry_run else ''}deleted", file=sys.stderr)
    return 0
