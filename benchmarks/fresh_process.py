"""Runs one phase of one contender in a process of its own, with a JVM that has just started."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.contenders import Rows, Statement, cold_run
from benchmarks.measure import Cost, Meter, quiet_session
from benchmarks.slow_listing import Listings


@dataclass(frozen=True)
class Answer:
    """What a process found; ``session`` is the time of Spark's start in seconds."""

    cost: Cost
    rows: Rows
    session: float


def run_in_process(
    conf: dict[str, str],
    statement: Statement,
    contender: str,
    phase: str,
    scratch: Path,
    *,
    database: str = "default",
    latency: int = 0,
) -> Answer:
    """Runs the phase in ``database``; ``latency`` is added to each listing, in milliseconds."""
    order = {
        "conf": conf,
        "database": database,
        "latency": latency,
        "statement": asdict(statement),
        "contender": contender,
        "phase": phase,
    }
    (scratch / "order.json").write_text(json.dumps(order))
    command = [sys.executable, "-m", "benchmarks.fresh_process", str(scratch)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    found = json.loads((scratch / "answer.json").read_text())
    rows = [tuple(row) for row in found["rows"]]
    return Answer(Cost(**found["cost"]), rows, found["session"])


def main() -> None:
    """Runs the order in the folder that the command line names."""
    scratch = Path(sys.argv[1])
    order = json.loads((scratch / "order.json").read_text())
    statement = Statement(**order["statement"])
    began = time.monotonic()
    with quiet_session("fresh", order["conf"]) as session:
        session.sql(f"USE {order['database']}")
        starting = time.monotonic() - began
        Listings(session).take(order["latency"])
        cost, rows = cold_run(
            session, Meter(session), order["contender"], order["phase"], statement, scratch
        )
    answer = {"cost": asdict(cost), "rows": rows, "session": starting}
    (scratch / "answer.json").write_text(json.dumps(answer, default=str))


if __name__ == "__main__":
    main()
