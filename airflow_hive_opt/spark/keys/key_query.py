"""Runs the key queries of a statement (HIVE-5119, step 5)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

from pyspark.errors import PySparkException

from airflow_hive_opt.documents.job import KeyBounds
from airflow_hive_opt.pruning.decisions import KeySource
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.spark.keys.key_set import Keys
from airflow_hive_opt.spark.keys.local_rows import WHOLE_CALENDAR, LocalRows
from airflow_hive_opt.spark.keys.stability import stable_plan
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.session_conf import conf_set
from airflow_hive_opt.spark.session.threads import in_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Found = Union[Keys, Reason]

COUNTING = ("Aggregate", "SubqueryAlias", "Project", "Repartition")
"""The operators of ``KeySource.counting_sql`` above the source's own."""
_OF_ONE_TABLE = frozenset(
    {"Project", "Filter", "SubqueryAlias", "Relation", "HiveTableRelation", "RelationV2"}
)
# Adaptive execution has nothing to improve for one table: turning it off saves a third.
_NOT_ADAPTIVE = {"spark.sql.adaptive.enabled": "false"}
_AT_ONCE = 4
MOST_BYTES_OF_A_KEY = 16 << 10
"""Bytes. No partition value is longer.

Longer keys are not ignored, because a condition may use only the beginning of a key.
"""
_TEXT_TYPES = ("string", "char", "varchar", "binary")
_TOO_LONG = "airflow_hive_opt: a key is too long"


@dataclass(frozen=True)
class KeyQuery:
    """A key query that Spark has analysed; ``settings`` must be set in the session while it runs.

    ``texts`` says whether a column is a text, whose size has a bound of its own. ``exact`` is that
    of :class:`~airflow_hive_opt.spark.keys.key_set.Keys`.
    """

    session: SparkSession
    source: KeySource
    frame: DataFrame
    texts: bool
    settings: tuple[tuple[str, str], ...]
    bounds: KeyBounds
    exact: bool = True

    def run(self) -> Found:
        """Reads at most ``max_keys`` keys plus one; raises Spark's errors."""
        try:
            rows = LocalRows(self.session, self.frame.limit(self.bounds.max_keys + 1))
        except PySparkException as error:
            if _TOO_LONG in str(error):
                return Reason.KEYS_TOO_LARGE
            raise
        if rows.count > self.bounds.max_keys:
            return Reason.TOO_MANY_KEYS
        most = self.bounds.max_key_bytes
        may_be_large = self.texts and rows.count * MOST_BYTES_OF_A_KEY > most
        if may_be_large and rows.size() > most:
            return Reason.KEYS_TOO_LARGE
        return Keys(self.source, rows, self.exact)


def key_query(
    session: SparkSession, source: KeySource, bounds: KeyBounds, parameters: Mapping[str, object]
) -> KeyQuery | Reason:
    """The query for the keys of ``source``, or the reason why they can't be used.

    A text longer than :data:`MOST_BYTES_OF_A_KEY` will not reach the driver. Raises Spark's errors.
    """
    frame = session.sql(source.counting_sql, args=dict(parameters))
    plan = stable_plan(frame)
    if plan is None:
        return Reason.KEY_SOURCE_NOT_DETERMINISTIC
    if plan.calls_python and not bounds.python_functions:
        return Reason.PYTHON_FUNCTION
    operators = plan.operators
    own = operators[len(COUNTING) :] if operators[: len(COUNTING)] == COUNTING else operators
    texts = [name for name, type_ in frame.dtypes if type_.startswith(_TEXT_TYPES)]
    if texts:
        frame = _without_long_texts(frame, texts)
    settings = {
        **({} if is_remote(session) else WHOLE_CALENDAR),
        **(_NOT_ADAPTIVE if _OF_ONE_TABLE.issuperset(own) else {}),
    }
    return KeyQuery(session, source, frame, bool(texts), tuple(settings.items()), bounds)


def collect_keys(
    session: SparkSession, source: KeySource, bounds: KeyBounds, parameters: Mapping[str, object]
) -> Found:
    """The keys of ``source``, or the reason why they can't be used; raises Spark's errors."""
    return run_alone(session, key_query(session, source, bounds, parameters))


def run_alone(session: SparkSession, query: KeyQuery | Reason) -> Found:
    """The keys of a query, or the reason why they can't be used; raises Spark's errors."""
    if isinstance(query, Reason):
        return query
    with conf_set(session, dict(query.settings)):
        return query.run()


def run_together(session: SparkSession, queries: Sequence[KeyQuery]) -> list[Future[Found]]:
    """Runs the queries at the same time and waits for them; one future for each, in their order.

    Queries with other settings follow, because settings hold for the whole session.
    """
    pool = ThreadPoolExecutor(_AT_ONCE, "keys")
    done: dict[int, Future[Found]] = {}
    try:
        for settings in dict.fromkeys(query.settings for query in queries):
            with conf_set(session, dict(settings)):
                for at, query in enumerate(queries):
                    if query.settings == settings:
                        done[at] = pool.submit(in_session(session, query.run))
                wait(done.values())
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # a stopped task does not wait for them
    return [done[at] for at in range(len(queries))]


def _without_long_texts(frame: DataFrame, texts: Collection[str]) -> DataFrame:
    """The frame; its run fails for a text that is too long for the driver."""
    return frame.selectExpr(
        *(
            f"IF(octet_length({name}) > {MOST_BYTES_OF_A_KEY}, raise_error('{_TOO_LONG}'), {name}) "
            f"AS {name}"
            if name in texts
            else name
            for name in frame.columns
        )
    )
