"""MERGE, UPDATE and DELETE as queries: the rows of the target that their condition can match.

The statement changes rows of the target for which ON or WHERE is true, so the condition holds for
every row of the target that takes part. A condition that follows from it can be added to it with
AND: it stays true for the same rows. MERGE also inserts rows of its source that match nothing, so
the source is on the preserved side.

>>> from airflow_hive_opt.pruning.example import row_level
>>> print(row_level('MERGE INTO sales s USING days d ON s.ds = d.ds WHEN MATCHED THEN DELETE'))
SELECT * FROM sales AS s RIGHT JOIN days AS d ON s.ds = d.ds
condition: s.ds = d.ds
source: days d
>>> print(row_level('DELETE FROM sales WHERE ds IN (SELECT ds FROM days)'))
SELECT * FROM sales AS sales WHERE ds IN (SELECT ds FROM days)
condition: ds IN (SELECT ds FROM days)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import TokenType, exp
from sqlglot.dialects.spark import Spark

from airflow_hive_opt.pruning.subqueries import plain_subquery, subquery_join
from airflow_hive_opt.statement.parse import Span, name_span, span_of, tree_of

_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)
_OPENING, _CLOSING = ("(", "CASE"), (")", "END")


@dataclass(frozen=True)
class InsertClause:
    """WHEN NOT MATCHED [BY TARGET] [AND condition] THEN INSERT.

    ``at`` is the position behind MATCHED or TARGET, ``condition`` that of its condition, if any.
    """

    at: int
    condition: Span | None


@dataclass(frozen=True)
class RowLevel:
    """A statement that changes single rows of a target.

    - ``kind`` is MERGE, UPDATE or DELETE.
    - ``target`` is the position of the target's name, without its alias ``target_alias``.
      ``aliased`` says that the statement gives the alias.
    - ``condition`` is the position of the condition in ON or WHERE.
    - ``source`` is the position of MERGE's source with its alias, ``None`` for the others, and
      ``source_alias`` its alias. ``inserts`` are MERGE's clauses that insert rows.
    - ``reads_whole_target`` says that the statement also changes rows that match nothing.
    """

    kind: str
    target: Span
    target_alias: str
    condition: Span
    source: Span | None = None
    source_alias: str = ""
    inserts: tuple[InsertClause, ...] = ()
    reads_whole_target: bool = False
    aliased: bool = True


def as_query(sql: str, tree: exp.Expr) -> tuple[RowLevel, exp.Select] | None:
    """The parts of the statement ``sql``, and a query that reads its target in the same way.

    ``None`` for other statements, for a statement without a condition, and for one whose parts have
    no known position. The query's nodes keep their positions in the statement.
    """
    if not isinstance(tree, (exp.Merge, exp.Update, exp.Delete)):
        return None
    copied = tree.copy()
    target = copied.this
    if not isinstance(target, exp.Table) or _others(copied):
        return None
    condition = _condition_of(copied)
    position = span_of(condition) if condition is not None else None
    at = name_span(target)
    if position is None or at is None:
        return None
    aliased = bool(target.alias)
    if not aliased:  # the condition may qualify columns with the whole name
        target.set("alias", exp.TableAlias(this=exp.to_identifier(target.name)))
    named = target.alias_or_name.lower()
    query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=target))
    if not isinstance(copied, exp.Merge):
        query.set("where", exp.Where(this=condition))
        kind = type(copied).__name__.upper()
        return RowLevel(kind, at, named, position, aliased=aliased), query
    source = copied.args["using"]
    covered = span_of(source)
    if covered is None or not source.alias_or_name:
        return None
    query.set("joins", [exp.Join(this=source, on=condition, side="RIGHT")])
    inserts = tuple(insert_clauses(sql, position.stop))
    whole = any(when.args.get("source") for when in copied.args["whens"].expressions)
    alias = source.alias_or_name.lower()
    return RowLevel("MERGE", at, named, position, covered, alias, inserts, whole, aliased), query


def matches_every_key(sql: str, column: str) -> bool:
    """Whether all rows of the target whose ``column`` has one of the keys meet the condition.

    The keys of another condition may be more than those for which it is true: a subquery's own
    conditions need not be part of the key query.

    >>> merge = "MERGE INTO t USING c ON {} WHEN MATCHED THEN DELETE"
    >>> ons = "t.k = c.k", "t.k = c.k AND t.v > 0"
    >>> [matches_every_key(merge.format(on), "k") for on in ons]
    [True, False]
    >>> delete = "DELETE FROM t WHERE k IN ({})"
    >>> queries = "SELECT k FROM c", "SELECT k FROM c WHERE v > 0", "SELECT max(k) FROM c"
    >>> [matches_every_key(delete.format(query), "k") for query in queries]
    [True, False, False]
    >>> matches_every_key(delete.format("SELECT /*+ BROADCAST(c) */ k AS other FROM c"), "k")
    True
    """
    tree = tree_of(sql)
    if not isinstance(tree, (exp.Merge, exp.Update, exp.Delete)):
        return False
    condition = _condition_of(tree)
    found = None if condition is None else condition.unnest()
    if isinstance(found, exp.In):
        return _is_named(found.this, column) and _selects_all(found)
    if not isinstance(tree, exp.Merge) or not isinstance(found, exp.EQ):
        return False
    sides = (found.left, found.right)
    return all(isinstance(side, exp.Column) for side in sides) and any(
        _is_named(side, column) for side in sides
    )


def _is_named(found: exp.Expr, column: str) -> bool:
    return isinstance(found, exp.Column) and found.name.lower() == column


def _selects_all(condition: exp.In) -> bool:
    """Whether IN has a query that reads one column of all rows of one table."""
    join = subquery_join(condition)
    plain = None if join is None else plain_subquery(join.query)
    return (
        plain is not None
        and len(plain.columns) == 1
        and plain.where is None
        and isinstance(plain.factor, exp.Table)
    )


def _condition_of(tree: exp.Merge | exp.Update | exp.Delete) -> exp.Expr | None:
    """The condition of the statement, in ON or WHERE; ``None`` if it has none."""
    condition = tree.args["on"] if isinstance(tree, exp.Merge) else tree.args.get("where")
    return condition.this if isinstance(condition, exp.Where) else condition


def _others(tree: exp.Expr) -> bool:
    """Whether the statement has parts of other dialects: joins, several tables, RETURNING."""
    known = {"this", "using", "on", "whens", "expressions", "where"}
    if not isinstance(tree, exp.Merge):
        known -= {"using"}
    return any(value for name, value in tree.args.items() if name not in known)


def insert_clauses(sql: str, after: int) -> Iterator[InsertClause]:
    """MERGE's clauses that insert rows behind position ``after``, the end of the ON condition.

    They are found by the statement's tokens.

    >>> sql = "MERGE INTO t USING s ON t.k = s.k WHEN NOT MATCHED AND s.v > 0 THEN INSERT *"
    >>> [(sql[:found.at][-7:], found.condition.of(sql)) for found in insert_clauses(sql, 24)]
    [('MATCHED', 's.v > 0')]
    """
    tokens = [token for token in Spark().tokenize(sql) if token.start >= after]
    words = ["" if token.token_type in _QUOTED else token.text.upper() for token in tokens]
    depth, outside = 0, []
    for at, word in enumerate(words):
        depth += (word in _OPENING) - (word in _CLOSING)
        if not depth and word not in _CLOSING:
            outside.append(at)
    for number, at in enumerate(outside):
        if words[at : at + 3] != ["WHEN", "NOT", "MATCHED"]:
            continue
        behind = at + 3
        if words[behind : behind + 2] == ["BY", "SOURCE"]:
            continue
        behind += 2 if words[behind : behind + 2] == ["BY", "TARGET"] else 0
        then = next(found for found in outside[number:] if words[found] == "THEN")
        condition = None
        if then > behind:  # AND is between
            condition = Span(tokens[behind + 1].start, tokens[then - 1].end + 1)
        yield InsertClause(tokens[behind - 1].end + 1, condition)
