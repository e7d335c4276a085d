"""The tables in which two runs of a statement leave other rows than one run.

INSERT OVERWRITE and DELETE leave the same rows however often they run, unless they read the table
that they write. A second CREATE TABLE AS fails, unless it replaces the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.lake_formats import ICEBERG_METADATA
from airflow_hive_opt.statement.parse import tree_of, why_unsupported
from airflow_hive_opt.statement.script import split_settings
from airflow_hive_opt.statement.tables import COMMENTS, is_name, mentions, writes_rows

# The last parts of the names of an Iceberg table's branches and versions.
_VERSIONS = re.compile("(branch|tag|snapshot_id|at_timestamp)_.+")
_OVERWRITES_FOLDER = re.compile(
    rf"{COMMENTS}INSERT\s+OVERWRITE\s+(LOCAL\s+)?DIRECTORY\b", re.IGNORECASE
)
_CHANGES = re.compile(rf"{COMMENTS}(MERGE|UPDATE|DELETE|REPLACE|CREATE)\b", re.IGNORECASE)
VALUES_OF_NULL = ("", "__HIVE_DEFAULT_PARTITION__")
"""The values of a partition that Spark reads as NULL."""


@dataclass(frozen=True)
class AddedTo:
    """A table to which a statement adds rows, or whose rows it changes.

    ``name`` is the table's name in SQL, as the statement has it. ``partition`` has the columns of
    the partition that INSERT names by strings, with their values.
    """

    name: str
    partition: tuple[tuple[str, str], ...] = ()


def tables_with_files_of_tasks(sql: str) -> tuple[AddedTo, ...]:
    """The tables whose folder holds the files of INSERT's finished tasks until its end.

    ``INSERT OVERWRITE`` of a whole table deletes that folder first, as one without a value for a
    partition does.

    >>> tables_with_files_of_tasks("INSERT OVERWRITE r PARTITION (day = '2026-01-31') SELECT 1")
    (AddedTo(name='`r`', partition=(('day', '2026-01-31'),)),)
    >>> tables_with_files_of_tasks("INSERT INTO d.r SELECT 1")
    (AddedTo(name='`d`.`r`', partition=()),)
    >>> tables_with_files_of_tasks("INSERT OVERWRITE r SELECT 1")
    ()
    >>> tables_with_files_of_tasks("INSERT OVERWRITE r PARTITION (day) SELECT 1, '2026-01-31'")
    ()
    """
    tree = tree_of(split_settings(sql)[1])
    found = tree.find_all(exp.Insert) if tree is not None else ()
    return tuple(
        _added_to(target)
        for insert in found
        if (target := _target_of(insert)) is not None
        and not (insert.args.get("overwrite") and not _has_value(target.args.get("partition")))
    )


def _has_value(partition: exp.Partition | None) -> bool:
    return partition is not None and partition.find(exp.EQ) is not None


def _target_of(insert: exp.Insert) -> exp.Table | None:
    target = insert.this.this if isinstance(insert.this, exp.Schema) else insert.this
    return target if isinstance(target, exp.Table) and is_name(target) else None


def commits_in_steps(sql: str) -> bool:
    """Whether Spark commits one INSERT of the statement after the other.

    >>> commits_in_steps("FROM a INSERT INTO r SELECT 1 INSERT INTO s SELECT 2")
    True
    >>> commits_in_steps("INSERT INTO r SELECT 1")
    False
    """
    return isinstance(tree_of(split_settings(sql)[1]), exp.MultitableInserts)


def may_write(sql: str) -> bool:
    """Whether the statement writes rows; also one that is not understood, but begins so.

    >>> may_write("MERGE WITH SCHEMA EVOLUTION INTO r USING s ON a = b WHEN MATCHED THEN DELETE")
    True
    >>> may_write("INSERT INTO r SELECT 1"), may_write("SELECT 1"), may_write("SELECT nonsense (")
    (True, False, False)
    """
    text = split_settings(sql)[1]
    return writes_rows(text) or (tree_of(text) is None and _CHANGES.match(text) is not None)


def may_repeat_rows(sql: str) -> bool:
    """Whether two runs of the statement may leave other rows than one run.

    >>> may_repeat_rows("INSERT INTO r SELECT 1"), may_repeat_rows("INSERT INTO ${t} SELECT 1")
    (True, True)
    >>> may_repeat_rows("INSERT OVERWRITE r SELECT 1"), may_repeat_rows("SELECT 1")
    (False, False)
    """
    return may_write(sql) and tables_added_to(sql) != ()


def tables_added_to(sql: str) -> tuple[AddedTo, ...] | None:
    """These tables of the statement; ``None`` if it is not understood.

    >>> tables_added_to("INSERT INTO dw.r PARTITION (day = '2026-01-31', hour) SELECT * FROM a")
    (AddedTo(name='`dw`.`r`', partition=(('day', '2026-01-31'),)),)
    >>> tables_added_to("FROM a INSERT OVERWRITE TABLE r SELECT 1 INSERT INTO s SELECT 2")
    (AddedTo(name='`s`', partition=()),)
    >>> tables_added_to("MERGE INTO l.d.r t USING s ON t.k = s.k WHEN MATCHED THEN DELETE")
    (AddedTo(name='`l`.`d`.`r`', partition=()),)
    >>> tables_added_to("INSERT OVERWRITE TABLE r SELECT 1"), tables_added_to("DELETE FROM r")
    ((), ())
    >>> tables_added_to("INSERT OVERWRITE dw.r SELECT * FROM raw.r JOIN r.orders")
    ()
    >>> tables_added_to("INSERT OVERWRITE DIRECTORY '/x' USING parquet SELECT * FROM r")
    ()
    >>> tables_added_to("CREATE OR REPLACE TABLE d.r AS SELECT * FROM r UNION ALL SELECT 1")
    (AddedTo(name='`d`.`r`', partition=()),)
    >>> tables_added_to("INSERT OVERWRITE d.r SELECT id + 1 FROM r")
    (AddedTo(name='`d`.`r`', partition=()),)
    >>> tables_added_to("INSERT OVERWRITE d.files SELECT * FROM files")
    (AddedTo(name='`d`.`files`', partition=()),)
    >>> tables_added_to("INSERT INTO l.a.b.r SELECT 1")
    (AddedTo(name='`l`.`a`.`b`.`r`', partition=()),)
    >>> tables_added_to("INSERT OVERWRITE l.d.r SELECT count(*) FROM l.d.r.snapshots")
    (AddedTo(name='`l`.`d`.`r`', partition=()),)
    >>> tables_added_to("CREATE OR REPLACE TEMPORARY FUNCTION f() RETURNS INT RETURN SELECT 1")
    ()
    >>> tables_added_to("DELETE FROM (SELECT 1)")
    >>> tables_added_to("INSERT INTO ${t} SELECT 1"), tables_added_to("CREATE TABLE r AS (")
    (None, None)
    """
    text = split_settings(sql)[1]
    if _OVERWRITES_FOLDER.match(text):
        return ()
    tree = tree_of(text)
    if tree is None or why_unsupported(text) is not None:
        return None
    named = mentions(tree)
    if isinstance(tree, exp.Delete):
        if not named.changed:  # not Spark's syntax
            return None
        target = named.changed[0]
        return _if_read(target, (read for read in named.reads if read is not target))
    if isinstance(tree, exp.Create):
        if not named.targets:  # a function
            return ()
        if tree.args.get("exists"):  # a table that it skips may lack its rows
            return None
        return _if_read(named.targets[0], named.reads) if tree.args.get("replace") else ()
    if isinstance(tree, (exp.Merge, exp.Update)):
        changed = tree.this
        return (_added_to(changed),) if isinstance(changed, exp.Table) else None
    if not isinstance(tree, (exp.Insert, exp.MultitableInserts)):
        return None
    found: list[AddedTo] = []
    for insert in tree.find_all(exp.Insert):
        if (into := _target_of(insert)) is None:
            return None
        replaces = insert.args.get("overwrite")
        found += _if_read(into, named.reads) if replaces else (_added_to(into),)
    return tuple(found)


def _if_read(target: exp.Table, reads: Iterable[exp.Table]) -> tuple[AddedTo, ...]:
    """The target if the statement may read it too: databases may be left out."""
    targets = _backwards(target)
    is_read = any(
        all(ours == its for ours, its in zip(name, other))
        for name in targets
        for read in reads
        for other in _backwards(read)
    )
    return (_added_to(target),) if is_read else ()


def _backwards(table: exp.Table) -> list[list[str]]:
    """The parts of the table's name, from the last one.

    If the last one may be that of Iceberg's metadata, of a branch or of a version, also without it.
    """
    names = [part.name.lower() for part in reversed(table.parts)]
    is_of_table = ICEBERG_METADATA.fullmatch(names[0]) or _VERSIONS.fullmatch(names[0])
    return [names, names[1:]] if is_of_table and len(names) > 1 else [names]


def _added_to(table: exp.Table) -> AddedTo:
    name = ".".join(quote(part.name) for part in table.parts)
    return AddedTo(name, tuple(_strings_of(table.args.get("partition"))))


def _strings_of(partition: exp.Partition | None) -> Iterator[tuple[str, str]]:
    for each in partition.expressions if partition is not None else ():
        value = each.expression if isinstance(each, exp.EQ) else None
        if isinstance(value, exp.Literal) and value.is_string and value.name not in VALUES_OF_NULL:
            yield each.this.name.lower(), value.name
