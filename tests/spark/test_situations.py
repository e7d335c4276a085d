"""Every situation of the page *What prunes*: the rows, what is kept and scanned, and the page.

``SITUATIONS_COUNTED=FILE`` writes how many are pruned, as JSON.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from packaging.version import Version
from pyspark.sql import DataFrame

from airflow_hive_opt.spark.session.session_conf import conf_set
from airflow_hive_opt.statement.settings import Settings
from benchmarks.contenders import EVERY_SWITCH
from tests.cases import slow_but
from tests.spark.answers import ask
from tests.spark.situations import SITUATIONS, Situation, first_of_each, setup
from tests.versions.installed import SPARK

PAGE = Path(__file__).parents[2] / "docs" / "how-it-works" / "what-prunes.md"
# Partitions of either big table whose values are not NULL; Spark leaves out the NULL partition of
# any equality, which is not counted as pruning here.
_VALUES = 20
PATHS = ("fast", "skeleton", "static")


@pytest.fixture(scope="module")
def situations(spark):
    session = spark.newSession()
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.sql("CREATE DATABASE IF NOT EXISTS situations")
    session.sql("USE situations")
    setup(session)
    yield session
    session.sql("USE default")
    session.sql("DROP DATABASE situations CASCADE")


@pytest.fixture(scope="module")
def read_by_spark():
    """Partitions that Spark's own pruning reads, as it comes and with every switch on."""
    return {}


@pytest.mark.parametrize(
    "situation",
    slow_but(SITUATIONS, *first_of_each()),
    ids=lambda each: f"{each.group}: {each.name}",
)
def test_each_situation_has_its_rows_outcome_and_scans(
    situations, tmp_path, read_by_spark, situation
):
    asked(situations, tmp_path, read_by_spark, situation)


def asked(situations, tmp_path, read_by_spark, situation):
    settings = Settings.of()
    if " huge " in situation.sql:
        settings = Settings.of({"hive.mapjoin.smalltable.filesize": "100"})
    answer = ask(situations, tmp_path, situation.sql, settings=settings)
    targets = {target.scan.alias: target for target in answer.descriptor.targets}
    target = targets.get(situation.alias)
    assert (target.path if target else answer.reasons[situation.alias]) == situation.outcome
    assert (target.kept if target else situation.total) == situation.kept
    if target and len(answer.descriptor.decisions) == 1:
        copies = 2 if "read twice" in situation.name else 1  # Spark plans a CTE for each reader
        assert answer.partitions_fetched == situation.kept * copies
    with conf_set(situations, EVERY_SWITCH):
        switched = situations.sql(situation.sql)
        switched.collect()
    frames = (answer.frame, switched)
    read_by_spark[situation] = tuple(partitions_read(frame, situation) for frame in frames)


@pytest.mark.slow
def test_the_page_shows_the_situations(situations, tmp_path, read_by_spark):
    """With ``WRITE_PAGE=1`` it writes the page."""
    for situation in SITUATIONS:
        if situation not in read_by_spark:
            asked(situations, tmp_path, read_by_spark, situation)
    counts = pruned(read_by_spark)
    if path := os.environ.get("SITUATIONS_COUNTED"):
        Path(path).write_text(json.dumps(counts))
    if Version("4.3") > SPARK:
        return  # the page is the newest Spark's
    text = page(read_by_spark, *counts)
    if os.environ.get("WRITE_PAGE"):
        PAGE.write_text(text)
    assert PAGE.read_text() == text


def partitions_read(frame: DataFrame, situation: Situation) -> int:
    """How many partitions of the big table plain Spark has read, after its own pruning."""
    counts = []
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    table = "hours" if situation.alias == "h" else "sales"
    for number in range(leaves.size()):
        leaf = leaves.apply(number)
        metric = leaf.metrics().get("numPartitions")
        if metric.isDefined() and f".{table}" in leaf.nodeName():
            counts.append(metric.get().value())
    return max(counts, default=0)


def pruned(read_by_spark: dict[Situation, tuple[int, int]]) -> tuple[int, int, int, int]:
    """How many situations there are, and are pruned by us, by Spark, by Spark with every switch."""
    ours = sum(one.outcome in PATHS for one in SITUATIONS)
    theirs = (sum(read[at] < _VALUES for read in read_by_spark.values()) for at in range(2))
    return len(SITUATIONS), ours, *theirs


def page(
    read_by_spark: dict[Situation, tuple[int, int]], asked: int, ours: int, spark: int, all_on: int
) -> str:
    """The page's text."""
    lines = [
        "# What prunes and what does not",
        "",
        "Every line is a test. *Kept* is the number of the big table's partitions that are read. "
        "The table has 21 partitions, and 20 if it has several partition columns. *Spark reads* is "
        "the number after Spark's own dynamic pruning. Spark first fetches the metadata of all "
        "partitions and lists all directories. The small tables are broadcast, which is Spark's "
        "best case. *Every switch on* is Spark with two more settings of "
        "`spark.sql.optimizer.dynamicPartitionPruning`: `reuseBroadcastOnly` off, so that it may "
        "run an extra query for pruning, and from Spark 4.3 `broadcastProjection.enabled`.",
        "",
        "The outcome is a path or a [reason code](../reference/reasons.md). `fast`: keys are "
        "compared with partition columns. `skeleton`: Spark evaluates the condition on partition "
        "names. `static`: names and literals decide, and no table is read.",
        "",
        f"Of these {asked} situations {ours} are pruned here, {spark} by Spark and {all_on} by "
        "Spark with every switch on. If Spark skips only the NULL partition, that does not count. "
        "[Older versions of Spark](../reference/versions.md#what-spark-itself-prunes).",
    ]
    for group in dict.fromkeys(one.group for one in SITUATIONS):
        lines += ["", f"## {group}", ""]
        lines += ["| situation | outcome | kept | Spark reads | every switch on |"]
        lines.append("|---|---|---|---|---|")
        lines += [
            "| {} | `{}` | {} | {} | {} |".format(
                one.name, one.outcome, one.kept, *read_by_spark[one]
            )
            for one in SITUATIONS
            if one.group == group
        ]
    return "\n".join(lines) + "\n"
