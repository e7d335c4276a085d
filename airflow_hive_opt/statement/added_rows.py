"""The tables in which two runs of a statement leave other rows than one run.

INSERT OVERWRITE and DELETE leave the same rows however often they run. A second CREATE TABLE AS
fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.parse import tree_of
from airflow_hive_opt.statement.script import split_settings


@dataclass(frozen=True)
class AddedTo:
    """A table to which a statement adds rows, or whose rows it changes.

    ``name`` is the table's name in SQL, as the statement has it. ``partition`` is the condition of
    the partition that INSERT names, and empty if it names none or not by literals alone.
    """

    name: str
    partition: str = ""


def tables_added_to(sql: str) -> tuple[AddedTo, ...] | None:
    """These tables of the statement; ``None`` if it is not understood.

    >>> tables_added_to("INSERT INTO dw.r PARTITION (day = '2026-01-31', hour) SELECT * FROM a")
    (AddedTo(name='`dw`.`r`', partition="`day` = '2026-01-31'"),)
    >>> tables_added_to("FROM a INSERT OVERWRITE TABLE r SELECT 1 INSERT INTO s SELECT 2")
    (AddedTo(name='`s`', partition=''),)
    >>> tables_added_to("MERGE INTO l.d.r t USING s ON t.k = s.k WHEN MATCHED THEN DELETE")
    (AddedTo(name='`l`.`d`.`r`', partition=''),)
    >>> tables_added_to("INSERT OVERWRITE TABLE r SELECT 1"), tables_added_to("CREATE TABLE r AS (")
    ((), None)
    """
    tree = tree_of(split_settings(sql)[1])
    if isinstance(tree, (exp.Delete, exp.Create)):
        return ()
    if isinstance(tree, (exp.Merge, exp.Update)):
        changed = tree.this
        return (_added_to(changed),) if isinstance(changed, exp.Table) else None
    if not isinstance(tree, (exp.Insert, exp.MultitableInserts)):
        return None
    found = []
    for insert in tree.find_all(exp.Insert):
        if insert.args.get("overwrite"):
            continue
        target = insert.this.this if isinstance(insert.this, exp.Schema) else insert.this
        if not isinstance(target, exp.Table):
            return None
        found.append(_added_to(target))
    return tuple(found)


def _added_to(table: exp.Table) -> AddedTo:
    name = ".".join(quote(part.name) for part in table.parts)
    return AddedTo(name, " AND ".join(_literals_of(table.args.get("partition"))))


def _literals_of(partition: exp.Partition | None) -> Iterator[str]:
    for each in partition.expressions if partition is not None else ():
        if isinstance(each, exp.EQ) and isinstance(each.expression, exp.Literal):
            yield f"{quote(each.this.name)} = {each.expression.sql('spark')}"
