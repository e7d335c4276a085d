"""EXPLAIN's decisions of partition pruning, as JSON and as text."""

import json

from airflow_hive_opt.explain.plan_text import to_json, to_text
from airflow_hive_opt.pruning.plan import plan
from airflow_hive_opt.statement.settings import Settings
from tests.pruning.catalogs import STAR

SQL = """SELECT s.item FROM sales s LEFT JOIN items i ON s.item = i.item JOIN days d ON s.ds = d.ds
         WHERE d.year = 2000 AND i.category = 'x' AND s.ds > '2'"""


def test_the_json_explanation_has_its_documented_fields():
    found = json.loads(json.dumps(to_json(plan(SQL, STAR))))
    assert found["verdict"] == "ok"
    assert found["filters"] == [
        {"alias": "i", "at": "after_join", "predicate": "i.category = 'x'"},
        {"alias": "s", "at": "scan", "predicate": "s.ds > '2'"},
        {"alias": "d", "at": "scan", "predicate": "d.year = 2000"},
    ]
    assert found["pruning"] == [
        {
            "scan": "s",
            "alias": "s",
            "table": "default.sales",
            "reference": [19, 24],
            "columns": ["ds"],
            "path": "fast",
            "sources": [
                {
                    "aliases": ["d"],
                    "sql": "SELECT DISTINCT `d`.`ds` FROM days AS `d` "
                    "WHERE (d.year = 2000) AND `d`.`ds` IS NOT NULL",
                }
            ],
            "reason": "PRUNED",
            "message": "only the partitions that match the keys or conditions are read",
        }
    ]


def test_the_text_explanation_shows_trees_and_decisions():
    text = to_text(plan(SQL, STAR))
    assert "JOIN LEFT OUTER ON s.item = i.item" in text
    assert "s (default.sales): PRUNED" in text
    assert "and of the statement itself: s.ds > '2'" in text


def test_a_scan_that_is_read_whole_has_advice():
    found = plan("SELECT * FROM sales s LEFT JOIN days d ON s.ds = d.ds AND d.year = 2000", STAR)
    advice = "Use an inner join if the result allows it."
    assert f"    to do: {advice} More: docs/guides/troubleshooting.md#nothing-is-pruned" in to_text(
        found
    )
    (shown,) = to_json(found)["pruning"]
    assert (shown["reason"], shown["advice"]) == ("PRESERVED_SIDE", advice)


def test_the_text_explanation_says_that_a_statement_passes_through():
    text = to_text(plan("SHOW TABLES", STAR))
    assert "passes through" in text
    assert "none: the statement is not planned" in text


def test_the_explanation_shows_keys_of_a_data_column():
    settings = Settings.of(switches={"key_predicate": True})
    found = plan("SELECT s.item FROM sales s JOIN items i ON s.item = i.item", STAR, settings)
    (shown,) = [each for each in to_json(found)["pruning"] if each["path"] == "predicate"]
    assert (shown["alias"], shown["columns"]) == ("s", ["item"])
    assert "  s (default.sales): path predicate" in to_text(found)
