"""Small tables that are read once, for their keys and for the join.

Hive's local task reads a small table once and makes the hash table of it that the map join is given
(HIVE-5119, the local work; "JoinOptimization" calls it the hash table file). Where one table gives
a scan its keys and one application runs both stages, its rows can be held between them: those for
which no condition of the key query holds take no part in the join either, by the rule that
partitions are left out by (:mod:`~airflow_hive_opt.planner.rules.weakening`).

>>> from airflow_hive_opt.planner.rules.example import hash_tables
>>> print(hash_tables('SELECT amount FROM sales s JOIN days d ON s.ds = d.ds AND year = 2000'))
days as d, columns ds and year, where (`d`.year = 2000)
>>> hash_tables('SELECT d.ds FROM days d LEFT JOIN sales s ON s.ds = d.ds AND d.year = 2000')
''
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from airflow_hive_opt.planner.operators import Operator, TableScan
from airflow_hive_opt.planner.pruning import HashTable
from airflow_hive_opt.planner.query import Condition
from airflow_hive_opt.planner.rules.weakening import weaken

# Spark's rows of these types come back from the driver as they went there.
_EXACT = re.compile(r"(tiny|small|big)?int|boolean|string|date|decimal\(.*\)|float|double")


def hash_table(tree: Operator, leaf: Operator, own: Iterable[Condition]) -> HashTable | None:
    """The table ``leaf`` of the block below ``tree``, filtered by ``own``, if that is all it needs.

    ``own`` are conditions on the leaf alone, those of a key query.
    """
    if not isinstance(leaf, TableScan):
        return None
    relation = leaf.relation
    table = relation.table
    exact = {column.name for column in table.columns if _EXACT.fullmatch(column.type)}
    if (
        table.partition_columns
        or table.definition
        or table.view
        or not (relation.restrictable and relation.stable)
        or not exact.issuperset(relation.columns_read)
        or not set(own) <= set(weaken(tree, leaf).holding)
    ):
        return None
    conditions = dict.fromkeys(f"({condition.sql})" for condition in own)
    return HashTable(relation, tuple(conditions))
