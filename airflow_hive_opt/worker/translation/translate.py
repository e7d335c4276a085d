"""Translates a whole query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from airflow_hive_opt.pruning.conditions import NOT_DETERMINISTIC
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.parse import parse, why_unsupported
from airflow_hive_opt.worker.translation.nodes import doubtful_texts
from airflow_hive_opt.worker.translation.queries import Queries
from airflow_hive_opt.worker.translation.work import Source, Work
from airflow_hive_opt.worker.types import SqlType
from airflow_hive_opt.worker.unanswered import Unanswered

_UNSTABLE = (exp.Limit, exp.Offset, exp.Fetch, exp.TableSample, exp.Window)


@dataclass(frozen=True)
class Translation:
    """A query in DuckDB's SQL; its columns are ``c0``, ``c1``, ... of the ``types``.

    - ``used`` has the names of columns that it reads, by the key of their source.
    - ``functions`` are the functions that it calls, by their names in the statement.
    - ``left_out`` says what was left out. The query then returns more rows than the statement's,
      or a row another number of times. Without, it returns exactly those.
    """

    sql: str
    types: tuple[SqlType, ...]
    used: Mapping[str, frozenset[str]]
    functions: frozenset[str]
    left_out: tuple[str, ...]


def is_stable(sql: str) -> bool:
    """Whether a query's text returns the same rows each time; raises :class:`Unanswered`."""
    return NOT_DETERMINISTIC.search(sql) is None and tree_of(sql).find(*_UNSTABLE) is None


def tree_of(sql: str) -> exp.Expr:
    """The tree of a text, which must not be changed; raises :class:`Unanswered`."""
    why = why_unsupported(sql)
    if why:
        raise Unanswered(why)
    try:
        return parse(sql)
    except PlanError as error:
        raise Unanswered(str(error)) from error


def translate(
    sql: str, source: Callable[[str], Source], parameters: Mapping[str, object]
) -> Translation:
    """Translates a SELECT; raises :class:`Unanswered`.

    ``source`` finds a table by its name as in the statement, in lower case. It raises
    :class:`~airflow_hive_opt.worker.unanswered.NotUnderstood` if there is none.
    """
    tree = tree_of(sql)
    work = Work(sql, source, parameters, doubtful_texts(sql))
    try:
        query = Queries(work, {}).query(tree, None, monotone=True)
        types = tuple(query.type_of(at) for at in range(len(query.names)))
        text = query.sql()
    except RecursionError:
        raise Unanswered("a key query is nested too deeply") from None
    if work.left_out and not work.restricting:
        raise Unanswered(
            f"the worker does not support {work.left_out[0]}, and no other condition restricts "
            "the keys"
        )
    return Translation(
        text, types, columns_by_source(work), frozenset(work.functions), tuple(work.left_out)
    )


def columns_by_source(work: Work) -> dict[str, frozenset[str]]:
    """The columns that a text uses of each source."""
    keys = dict.fromkeys(key for key, _ in work.used)
    return {key: frozenset(n for k, n in work.used if k == key and n) for key in keys}
