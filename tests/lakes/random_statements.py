"""The loops of the formats' random tests: each statement runs with its keys and plain.

``make fuzz-delta-3.5 N=1000 SEED=7`` tests more of them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.settings import Settings
from tests.fuzz.findings import SEED, case, count_of, differing, repeat, report
from tests.fuzz.generator import query
from tests.fuzz.schema import FACTS
from tests.lakes.changes import change
from tests.lakes.runs import rows_of, run

QUERIES = count_of("FUZZ_QUERIES", 40)
WRITES = count_of("FUZZ_WRITES", 30)
ANY_COLUMN = Settings.of(switches={"key_predicate": True})
# Tiny statements: planning and compiling would be nearly all of their time.
SMALL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# How many statements change a table, one after the other, unless they leave few of its rows.
_EACH_TABLE, _FEWEST_ROWS = 6, 10
_FAILURES = (PySparkException, Py4JJavaError, PlanError)


@dataclass(frozen=True)
class Changes:
    """What differs between the formats.

    - ``layouts`` are the names of the kinds of tables.
    - ``create(table, layout, fact)`` makes the table anew, with the rows of the fact.
    - ``refused`` are parts of the messages with which the format refuses a statement itself. With
      keys it must refuse it for the same reason.
    - ``most_refused`` and ``least_restricted`` are shares of the statements.
    - ``faults`` are parts of the messages of the format's own faults, by which plain statements
      fail. With keys such a statement may succeed.
    - ``accepts(sql)`` is false for statements that the format always refuses.
    """

    layouts: tuple[str, ...]
    create: Callable[[str, str, str], None]
    refused: tuple[str, ...]
    most_refused: float
    least_restricted: float
    accepts: Callable[[str], bool] = lambda _: True
    faults: tuple[str, ...] = ()


def check_queries(session, path, least_restricted: float) -> None:
    """Random queries: the rows are those of plain Spark."""
    wrong, reasons, failing = [], Counter(), 0
    rng = random.Random(SEED)
    for number in range(QUERIES):
        sql = query(SEED * 1_000_003 + number).sql
        options = _options(rng)
        try:
            plain = rows_of(session, sql)
        except _FAILURES:
            failing += 1
            continue
        with case(f"query {number}", statement=sql) as finding:
            found = run(session, sql, path, **options)
        reasons.update(found.reasons.values())
        if found.rows != plain:
            said = {"ran": found.statement, "values": found.values, "reasons": found.reasons}
            wrong.append(finding(**said, **differing(plain, found.rows)))
    counted = f"{repeat(FUZZ_QUERIES=QUERIES)}: {failing} that plain Spark refuses, {reasons}"
    print(f"{counted}, {len(wrong)} wrong")
    assert not wrong, report(wrong, FUZZ_QUERIES=QUERIES)
    assert reasons["RESTRICTED"] >= QUERIES * least_restricted, counted


def check_changes(session, path, changes: Changes) -> None:
    """Random MERGE, UPDATE and DELETE: the table has the rows that plain Spark leaves."""
    wrong, reasons, refused = [], Counter(), Counter()
    rng = random.Random(SEED)
    name = layout = ""
    before: list[str] = []
    left = 0
    for number in range(WRITES):
        if not left:  # creating tables takes most of the time
            name, layout = rng.choice(sorted(FACTS)), rng.choice(changes.layouts)
            for copy in ("plain", "ours"):
                changes.create(f"{name}_{copy}", layout, name)
            before, left = [], _EACH_TABLE
        left -= 1
        options = _options(rng)
        sql = change(rng, name, f"{name}_{{}}")
        while not changes.accepts(sql) and rng.random() < 0.9:
            sql = change(rng, name, f"{name}_{{}}")
        failed: dict[str, str] = {}
        ran = None
        with case(f"change {number}, {layout}", statement=sql) as finding:
            try:
                session.sql(sql.replace("{}", "plain"))
            except _FAILURES as error:
                failed["plain"] = str(error)
            try:
                found = run(session, sql.replace("{}", "ours"), path, **options)
                ran = found.statement
                reasons.update(found.reasons.values())
            except _FAILURES as error:
                failed["ours"] = str(error)
            listed = ", ".join(each for part in FACTS[name] for each in part)
            contents = [
                rows_of(session, f"SELECT {listed} FROM {name}_{copy}")
                for copy in ("plain", "ours")
            ]
        if any(fault in failed.get("plain", "") for fault in changes.faults):
            refused["fault"] += 1
            left = 0
            continue
        kinds = {_kind(text, changes.refused) for text in failed.values()}
        refused.update(kinds)
        if contents[0] != contents[1] or len(kinds) > 1 or len(failed) == 1:
            wrong.append(finding(ran=ran, failed=failed, before=before, **differing(*contents)))
            left = 0
        if len(contents[0]) < _FEWEST_ROWS:
            left = 0
        before = [*before, sql]
    counted = f"{repeat(FUZZ_WRITES=WRITES)}: plain Spark refuses {dict(refused)}, {reasons}"
    print(f"{counted}, {len(wrong)} wrong")
    assert not wrong, report(wrong, FUZZ_WRITES=WRITES)
    assert reasons["RESTRICTED"] >= WRITES * changes.least_restricted, counted
    assert sum(refused.values()) <= WRITES * changes.most_refused, counted


def _options(rng: random.Random) -> dict[str, Settings]:
    return {"settings": ANY_COLUMN} if rng.random() < 0.5 else {}


def _kind(text: str, refused: tuple[str, ...]) -> str:
    return next((name for name in refused if name in text), "refused")
