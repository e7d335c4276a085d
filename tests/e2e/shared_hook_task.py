"""``python -m tests.e2e.shared_hook_task WAREHOUSE JSON``: a hook's statements in a shared Spark.

The JSON has ``statements``, ``alarm``, the seconds after which Airflow's timeout interrupts
them, and ``kills``, whether the shared Spark ends after the first. Prints the error's
kind and message.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from airflow.providers.common.compat.sdk import AirflowTaskTimeout

from airflow_hive_opt.hooks.pruned_sql import PrunedSqlHook
from airflow_hive_opt.spark.session.shared_folder import SharedFolder
from tests.e2e.shared_task import OF_THE_JVM, say


def late(*_: object) -> None:
    raise AirflowTaskTimeout("late")


def end_spark(_: object) -> None:
    (shared,) = [each for each in SharedFolder.all() if each.is_alive()]
    os.kill(shared.pid(), signal.SIGKILL)
    while shared.is_alive():
        time.sleep(0.1)


def main() -> None:
    warehouse, given = sys.argv[1], json.loads(sys.argv[2])
    os.environ["AIRFLOW__HIVE_OPT__SESSION"] = "shared"
    os.environ["AIRFLOW__HIVE_OPT__WAREHOUSE"] = warehouse
    os.environ["AIRFLOW_CONN_PRUNED"] = json.dumps({"conn_type": "hive_opt"})
    conf = {"spark.master": "local[2]", **OF_THE_JVM}
    hook = PrunedSqlHook("pruned", conf=conf, descriptor_path=f"{warehouse}/descriptors")
    signal.signal(signal.SIGALRM, late)
    signal.alarm(given.get("alarm", 0))
    try:
        hook.run(given["statements"], handler=end_spark if given.get("kills") else None)
        say(done=True)
    except BaseException as error:  # noqa: BLE001 - a timeout is one
        say(kind=type(error).__name__, message=str(error))


if __name__ == "__main__":
    main()
