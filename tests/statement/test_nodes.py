"""The quick walk finds what the parser's own walk finds."""

import pytest
from sqlglot import exp

from airflow_hive_opt.statement.nodes import nodes
from airflow_hive_opt.statement.parse import parse
from tests.long_statements import SHAPES

STATEMENTS = (
    "SELECT t.* EXCEPT (a), q.b.c[0].d, transform(e, x -> x + t.f) FROM db.t AS t WHERE t.k = :v",
    "WITH c AS (SELECT a FROM t) INSERT OVERWRITE TABLE r PARTITION (p = 1) SELECT c.a FROM c",
    "SELECT * FROM t PIVOT (sum(v) FOR k IN ('x', 'y')) WHERE EXISTS (SELECT 1 FROM u WHERE a = b)",
    "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v",
    *(make(20) for make, _ in SHAPES.values()),
)


def of_a_column(node):
    """Not of ``t.*``, whose star may have columns below it."""
    column = node.parent
    return isinstance(column, exp.Column) and not isinstance(column.this, exp.Star)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_walk_gives_all_nodes_but_identifiers_of_columns_in_order(sql):
    tree = parse(sql)
    expected = [id(node) for node in tree.bfs() if not of_a_column(node)]
    assert [id(node) for node in nodes(tree)] == expected


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_walk_stops_at_nodes_of_the_given_types(sql):
    tree = parse(sql)
    walked = tree.bfs(prune=lambda node: isinstance(node, (exp.Query, exp.Lambda)))
    expected = [id(node) for node in walked if not of_a_column(node)]
    assert [id(node) for node in nodes(tree, stop=(exp.Query, exp.Lambda))] == expected
