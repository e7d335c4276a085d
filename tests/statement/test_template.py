"""What a statement has in common with those of the same template."""

from __future__ import annotations

import pytest

from airflow_hive_opt.statement.parse import MOST_CHARACTERS
from airflow_hive_opt.statement.template import template_digest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT 1", "SELECT -2.5"),
        ("SELECT 'a'", 'SELECT "it\'s"'),
        ("SELECT 'it''s'", r"SELECT r'\d'"),
        ("SELECT 1e3, 7", "SELECT 2e3, 8"),
        ("SELECT 7L", "SELECT 8L"),
        ("a IN (1, 2, 3)", "a IN (4)"),
        ("a IN (DATE '2026-01-01')", "a IN (DATE '2026-01-02', DATE '2026-01-03')"),
        ("(a, b) IN ((1, 'x'), (2, 'y'))", "(a, b) IN ((3, 'z'))"),
        ("-- run 1, today's\nSELECT a", "-- run 2\nSELECT   a /* it's */"),
    ],
)
def test_literals_and_comments_do_not_count(one, other):
    assert template_digest(one) == template_digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM t", "SELECT a FROM u"),
        ("SELECT a FROM l.`2025`", "SELECT a FROM l.`2026`"),
        ("-- today's\nSELECT a FROM t -- it's", "-- today's\nSELECT a FROM u -- it's"),
        ('SELECT "it\'s" FROM t', 'SELECT "it\'s" FROM u'),
        (r"SELECT r'\', a FROM t, 'x'", r"SELECT r'\', a FROM u, 'x'"),
        ("SELECT /*+ MAPJOIN(a) */ 1", "SELECT /*+ MAPJOIN(b) */ 1"),
        ("SELECT 'not closed", "SELECT 'not  closed"),
        ("SELECT \ud800", "SELECT \ud801"),
    ],
)
def test_all_else_counts(one, other):
    assert template_digest(one) != template_digest(other)


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_text_that_is_too_long_to_be_planned_counts_as_it_is(quote):
    for characters, digests in ((MOST_CHARACTERS, 2), (MOST_CHARACTERS - 10, 1)):
        texts = [quote + r"\'" * (characters // 2) + end + quote for end in "ab"]
        assert len(set(texts)) == 2
        assert len(set(map(template_digest, texts))) == digests
