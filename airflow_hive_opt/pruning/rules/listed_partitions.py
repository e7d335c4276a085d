"""The distinct values of partition columns from a table's own metadata, not from its rows.

Iceberg lists the partitions of a table's files in a table of its own. Reading it takes a fraction
of the time. A partition stays in the list as long as it has files, even if all of their rows are
deleted. A key too many only lets a scan read more, so this holds for keys that become conditions on
a scan.

>>> from airflow_hive_opt.pruning.example import keys_of_metadata
>>> print(keys_of_metadata("SELECT o.v FROM lake.s.orders o JOIN lake.s.days d ON o.day = d.day"))
SELECT DISTINCT `d`.`day` FROM lake.s.days AS `d` WHERE `d`.`day` IS NOT NULL
-->
SELECT DISTINCT `d`.`day` FROM (SELECT partition.`day` AS `day` FROM `lake`.`s`.`days`.`partitions`)
AS `d` WHERE `d`.`day` IS NOT NULL
"""

from __future__ import annotations

from collections.abc import Collection

from airflow_hive_opt.pruning.operators import Operator, TableScan
from airflow_hive_opt.pruning.query import ColumnRef
from airflow_hive_opt.statement.identifiers import quote, quote_table


def listed_partitions(operator: Operator, columns: Collection[ColumnRef]) -> str | None:
    """A relation with ``columns`` of the scanned table, from its metadata; ``None`` if not there.

    A table that is sampled or read in an older version is not asked this way.
    """
    if not isinstance(operator, TableScan):
        return None
    relation = operator.relation
    fields = dict(relation.table.partition_fields)
    names = sorted({column.name for column in columns})
    if not relation.restrictable or not fields.keys() >= set(names):
        return None
    selected = ", ".join(f"partition.{quote(fields[name])} AS {quote(name)}" for name in names)
    listing = f"{quote_table(relation.table.name)}.`partitions`"
    return f"(SELECT {selected} FROM {listing}) AS {quote(relation.alias)}"
