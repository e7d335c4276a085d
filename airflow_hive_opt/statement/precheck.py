"""Finds mistakes in a statement's text before Spark starts.

Only what is certainly wrong is an error here: Spark knows more statements than the planner.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping

from sqlglot import TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from airflow_hive_opt.statement.errors import PlanError, position
from airflow_hive_opt.statement.parse import error_at, tree_of, why_unsupported
from airflow_hive_opt.statement.tables import mentions

_COMMON = ("SELECT", "INSERT", "CREATE", "WITH", "FROM", "DROP", "ALTER", "MERGE", "UPDATE")
# The words with which statements of Hive, Spark and the table formats begin.
_FIRST_WORDS = re.compile(
    "|".join(_COMMON)
    + "|ABORT|ADD|ANALYZE|BEGIN|CACHE|CALL|CLEAR|CLONE|CLOSE|COMMENT|COMMIT|COMPILE|CONVERT|COPY"
    "|DECLARE|DELETE|DESC|DESCRIBE|DFS|EXECUTE|EXPLAIN|EXPORT|FETCH|GENERATE|GRANT|IMPORT|KILL|LIST"
    "|LOAD|LOCK|MAP|MSCK|OPEN|OPTIMIZE|REDUCE|REFRESH|RELOAD|REORG|REPAIR|REPLACE|RESET|RESTORE"
    "|REVOKE|ROLLBACK|SET|SHOW|START|TABLE|TRUNCATE|UNCACHE|UNLOCK|UNSET|USE|VACUUM|VALUES",
    re.IGNORECASE,
)
_FIRST_WORD = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*([A-Za-z_]\w*)", re.DOTALL)
_NO_SUCH_TABLE = 10001  # Hive's number
_BEFORE_A_PATH = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET)


def check_first_word(sql: str) -> None:
    """Raises :class:`PlanError` if no statement begins with the first word.

    >>> check_first_word("/* of today */ SELEC 1")
    Traceback (most recent call last):
    airflow_hive_opt.statement.errors.PlanError: line 1, column 16: no statement begins with \
SELEC, did you mean SELECT?
    >>> check_first_word("select 1"), check_first_word("(SELECT 1)")
    (None, None)
    """
    found = _FIRST_WORD.match(sql)
    if found is None or _FIRST_WORDS.fullmatch(found[1]):
        return
    if tree_of(sql) is None:
        message = f"no statement begins with {found[1]}{_near(found[1].upper(), _COMMON)}"
        raise PlanError("PARSE", message, *position(sql, found.start(1)))


def parameters_of(sql: str) -> tuple[str, ...]:
    """The names of the ``:name`` markers, in their order.

    >>> parameters_of("SELECT ':a', b:c FROM t WHERE d = :day AND e < :day + :n -- :f")
    ('day', 'n')
    >>> parameters_of("SELECT CAST(NULL AS STRUCT<date:STRING, a :INT, values:ARRAY<INT>>)")
    ()
    """
    return tuple(dict.fromkeys(sql[start + 1 : stop] for start, stop in _markers(sql)))


def with_values(sql: str, parameters: Mapping[str, str]) -> str:
    r"""The statement with string literals instead of its ``:name`` markers.

    >>> with_values("SELECT ':n' WHERE a = :n", {"n": "it's"})
    "SELECT ':n' WHERE a = 'it\\'s'"
    """
    for start, stop in reversed(_markers(sql)):
        value = parameters[sql[start + 1 : stop]].replace("\\", "\\\\").replace("'", "\\'")
        sql = f"{sql[:start]}'{value}'{sql[stop:]}"
    return sql


def _markers(sql: str) -> list[tuple[int, int]]:
    try:
        tokens = Spark().tokenize(sql)
    except TokenError:
        return []
    found = []
    for before, colon, name in zip(tokens, tokens[1:], tokens[2:]):
        attached = before.end + 1 == colon.start
        is_path = attached and (before.token_type in _BEFORE_A_PATH or before.text.isidentifier())
        # a field of STRUCT, whose type follows
        is_path |= before.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
        is_name = colon.end + 1 == name.start and name.text.isidentifier()
        if colon.token_type is TokenType.COLON and is_name and not is_path:
            found.append((colon.start, name.end + 1))
    return found


def check_tables(sql: str, tables: Mapping[str, Collection[str]]) -> None:
    """Raises :class:`PlanError` for a table that a query reads and that does not exist.

    ``tables`` has the tables and views of each database, in lower case. Names in other databases
    are not checked: these may be files or another catalog's.

    >>> check_tables("SELECT * FROM vists", {"default": ["days", "visits"]})
    Traceback (most recent call last):
    airflow_hive_opt.statement.errors.PlanError: line 1, column 15: there is no table vists, \
did you mean visits?
    >>> check_tables("WITH a AS (SELECT 1) SELECT * FROM a, other.b, range(9)", {"default": []})
    """
    tree = None if why_unsupported(sql) else tree_of(sql)
    if not isinstance(tree, (exp.Query, exp.Insert)):
        return
    for table in mentions(tree).reads:
        names = tables.get((table.db or "default").lower())
        if names is None or table.catalog or table.name.lower() in names:
            continue
        named = ".".join(part.name for part in table.parts)
        message = f"there is no table {named}{_near(table.name.lower(), names)}"
        found = error_at(sql, table, message)
        raise PlanError(found.code, message, found.line, found.column, number=_NO_SUCH_TABLE)


def _near(word: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f", did you mean {near[0]}?" if near else ""
