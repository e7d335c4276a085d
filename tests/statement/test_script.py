"""Scripts are cut at the semicolons that end statements, and at no other."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_hive_opt.statement.script import split_statements

PARTS = [
    *("'a;b'", r"'it\';s'", "'it''s;'", '"a;b"', r'"\";"', "`a;``b`"),
    *("-- c; d\n", "-- c; \\\n d;\n", "/* a; */", "/* a /* ; */ ; */", "/*+ BROADCAST(a) */"),
    *(r"r'a\'", r'R"a;\"', "expr'a;'", "SELECT", "beginning", "a", " ", "\n", ",", "1", "."),
]


def texts(script):
    return [found.text for found in split_statements(script)]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_a_statement_ends_it_nowhere(part):
    assert texts(f"SELECT 1, {part} FROM t; SELECT 2") == [f"SELECT 1, {part} FROM t", "SELECT 2"]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", []),
        (" ;; -- nothing; \n /* ; */ ;", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1; -- done", ["SELECT 1"]),
        ("SELECT 1 /* never closed ; SELECT 2", ["SELECT 1 /* never closed ; SELECT 2"]),
        ("SELECT 'never closed ; SELECT 2", ["SELECT 'never closed", "SELECT 2"]),
        (
            "SET a=b; -- first\nBEGIN SELECT 1; SELECT 2; END;",
            ["SET a=b", "-- first\nBEGIN SELECT 1; SELECT 2; END;"],
        ),
        ("SET a=b; l: BEGIN SELECT 1; END l;", ["SET a=b", "l: BEGIN SELECT 1; END l;"]),
        ("`a;b` /* ; */ :begin SELECT 1; END;", ["`a;b` /* ; */ :begin SELECT 1; END;"]),
        ("SELECT :begin; SELECT 2", ["SELECT :begin", "SELECT 2"]),
        ("SELECT begin FROM t; SELECT 2", ["SELECT begin FROM t", "SELECT 2"]),
    ],
)
def test_scripts_have_these_statements(script, expected):
    assert texts(script) == expected


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(st.sampled_from(PARTS), min_size=1, max_size=6), max_size=4))
def test_statements_keep_their_places_in_any_script(statements):
    wanted = [f"SELECT {' '.join(parts)}".strip() for parts in statements]
    script = "\n;".join(wanted)
    found = split_statements(script)
    assert [each.text for each in found] == wanted
    for each in found:
        start = len(each.before)
        assert script[start : start + len(each.text)] == each.text
        assert each.before.count("\n") == script[:start].count("\n")
