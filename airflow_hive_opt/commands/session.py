"""``airflow-hive-opt session``: the Spark that the tasks of one user on one machine share."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.commands.arguments import add_verbose

if TYPE_CHECKING:
    from airflow_hive_opt.spark.session.shared_folder import SharedFolder


def add(commands: Any) -> None:
    """Adds the command to the subparsers."""
    session = commands.add_parser("session", help="the Spark that the tasks of a machine share")
    actions = session.add_subparsers(required=True, metavar="COMMAND")
    status = actions.add_parser("status", help="show the shared Sparks of the current user")
    stop = actions.add_parser("stop", help="end the shared Sparks that no task uses")
    stop.add_argument(
        "--force", action="store_true", help="also end those in use: their tasks fail"
    )
    for action in (status, stop):
        add_verbose(action)
    status.set_defaults(run=lambda _: session_status())
    stop.set_defaults(run=lambda options: session_stop(options.force))


def session_status() -> int:
    """Prints one line for each shared Spark that runs; returns 0."""
    from airflow_hive_opt.spark.session.shared_folder import SharedFolder, sessions_root

    running = [found for found in SharedFolder.all() if found.is_alive()]
    if not running:
        print(f"no shared Spark runs: none is listed in {sessions_root()}")
    for found in running:
        process = f"process {found.pid() or 'on another machine'}"
        state = _tasks(found.tasks()) if found.address() else "not ready"
        print(f"{process}, {state}, log {found.log}")
    return 0


def session_stop(force: bool) -> int:
    """Ends idle shared Sparks (with ``force`` also used ones) and prints how many.

    Returns 1 if one still runs.
    """
    from airflow_hive_opt.spark.session.shared_folder import SharedFolder

    running = [found for found in SharedFolder.all() if found.is_alive()]
    if not running:
        print("no shared Spark runs: nothing to stop")
    failed = 0
    for found in running:
        process = f"process {found.pid() or 'on another machine'}"
        if found.kill() if force else found.stop():
            print(f"stopped: {process}")
        else:
            failed = 1
            print(f"error: not stopped: {process}, {_why(found, force)}", file=sys.stderr)
    return failed


def _why(found: SharedFolder, force: bool) -> str:
    if found.pid() is None:
        return "this shared Spark runs on another machine"
    if force:
        return f"its process does not end, see {found.log}"
    if found.address() is None:
        return "this shared Spark is starting or ending. Wait, or use --force"
    if found.tasks():
        return f"in use by {_tasks(found.tasks())}. Wait, or use --force"
    return "a task is about to use this shared Spark. Try again"


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"
