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

from dataclasses import dataclass

from sqlglot import exp

from airflow_hive_opt.pruning.merge_clauses import InsertClause, insert_clauses
from airflow_hive_opt.statement.parse import Span, span_of


@dataclass(frozen=True)
class RowLevel:
    """A statement that changes single rows of a target.

    - ``kind`` is MERGE, UPDATE or DELETE.
    - ``target`` is the position of the target's name, without its alias ``target_alias``.
    - ``condition`` is the position of the condition in ON or WHERE.
    - ``source`` is the position of MERGE's source with its alias, ``None`` for the others, and
      ``source_alias`` its alias. ``inserts`` are MERGE's clauses that insert rows.
    - ``reads_whole_target`` says that also rows that match nothing are changed.
    """

    kind: str
    target: Span
    target_alias: str
    condition: Span
    source: Span | None = None
    source_alias: str = ""
    inserts: tuple[InsertClause, ...] = ()
    reads_whole_target: bool = False


def as_query(sql: str, tree: exp.Expr) -> tuple[RowLevel, exp.Select] | None:
    """The statement ``sql``, and a query that reads its target as it does.

    ``None`` for other statements, for a statement without a condition, and for one whose parts have
    no known position. The query's nodes keep their positions in the statement.
    """
    if not isinstance(tree, (exp.Merge, exp.Update, exp.Delete)):
        return None
    copied = tree.copy()
    target = copied.this
    if not isinstance(target, exp.Table) or _others(copied):
        return None
    condition = copied.args["on"] if isinstance(copied, exp.Merge) else copied.args.get("where")
    condition = condition.this if isinstance(condition, exp.Where) else condition
    position = span_of(condition) if condition is not None else None
    names = [part for part in target.parts if isinstance(part, exp.Identifier)]
    if position is None or len(names) < len(target.parts):
        return None
    at = Span(names[0].meta["start"], names[-1].meta["end"] + 1)
    if not target.alias:  # the condition may qualify columns with the whole name
        target.set("alias", exp.TableAlias(this=exp.to_identifier(target.name)))
    named = target.alias_or_name.lower()
    query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=target))
    if not isinstance(copied, exp.Merge):
        query.set("where", exp.Where(this=condition))
        return RowLevel(type(copied).__name__.upper(), at, named, position), query
    source = copied.args["using"]
    covered = span_of(source)
    if covered is None or not source.alias_or_name:
        return None
    query.set("joins", [exp.Join(this=source, on=condition, side="RIGHT")])
    inserts = tuple(insert_clauses(sql, position.stop))
    whole = any(when.args.get("source") for when in copied.args["whens"].expressions)
    alias = source.alias_or_name.lower()
    return RowLevel("MERGE", at, named, position, covered, alias, inserts, whole), query


def _others(tree: exp.Expr) -> bool:
    """Whether it has parts that other dialects know: joins, several tables, RETURNING."""
    known = {"this", "using", "on", "whens", "expressions", "where"}
    if not isinstance(tree, exp.Merge):
        known -= {"using"}
    return any(value for name, value in tree.args.items() if name not in known)
