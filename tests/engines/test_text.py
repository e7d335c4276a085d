"""The conditions of Trino, Athena and BigQuery: only their text is tested, by sqlglot's parsers."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pytest
import sqlglot
from sqlglot import exp

from airflow_hive_opt.engines import bigquery, trino
from airflow_hive_opt.engines.scan import PrunedScan
from airflow_hive_opt.metastores.partitions import Partition
from tests.engines.lake_scans import filter_on, lake_scan
from tests.engines.tables import TEXTS

HIVE = PrunedScan(
    "dw.sales",
    None,
    ("k", "n", "d", "m", "b", "ts"),
    ("string", "bigint", "date", "decimal(5,2)", "boolean", "timestamp"),
    ("k", "n", "d", "m", "b", "ts"),
    (
        Partition(("it's", "7", "2024-01-31", "1.2", "true", "2024-03-31 02:30:00")),
        Partition(("it's", "7", "2024-01-31", "1.2", None, "2024-01-31 00:00:00.25")),
    ),
    (),
    lists_files=False,
)
AT = datetime(2024, 3, 31, 2, 30, tzinfo=timezone.utc)


def test_trino_text():
    assert trino.condition(HIVE) == (
        """("k" IN ('it''s') AND "n" IN (7) AND "d" IN (DATE '2024-01-31') AND """
        """"m" IN (CAST('1.20' AS DECIMAL(5,2))) AND """
        """(("b" IS NULL AND "ts" IN (TIMESTAMP '2024-01-31 00:00:00.250000')) OR """
        """("b" IN (TRUE) AND "ts" IN (TIMESTAMP '2024-03-31 02:30:00'))))"""
    )
    of_lake = lake_scan(filter_on("at", "timestamp", [AT, AT], is_range=True))
    at = "TIMESTAMP '2024-03-31 02:30:00 UTC'"
    assert trino.condition(of_lake) == f'"at" BETWEEN {at} AND {at}'


def test_bigquery_text():
    assert bigquery.condition(HIVE) == (
        r"""(`k` IN ('it\x27s') AND `n` IN (7) AND `d` IN (DATE '2024-01-31') AND """
        """`m` IN (CAST('1.20' AS BIGNUMERIC)) AND """
        """((`b` IS NULL AND `ts` IN (TIMESTAMP '2024-01-31 00:00:00.250000+00:00')) OR """
        """(`b` IN (TRUE) AND `ts` IN (TIMESTAMP '2024-03-31 02:30:00+00:00'))))"""
    )


@pytest.mark.parametrize(
    ("dialect", "engine"), [("trino", trino), ("athena", trino), ("bigquery", bigquery)]
)
def test_the_texts_are_those_that_the_dialect_reads(dialect, engine):
    partitions = tuple(Partition((text,)) for text in TEXTS)
    scan = replace(
        HIVE, columns=("k",), types=("string",), pruned_columns=("k",), partitions=partitions
    )
    tree = sqlglot.parse_one(f"SELECT 1 WHERE {engine.condition(scan)}", dialect=dialect)
    found = {literal.this for literal in tree.find_all(exp.Literal) if literal.is_string}
    assert found == {text for text in TEXTS if text is not None}
    assert tree.find(exp.Null)
    sqlglot.parse_one(f"SELECT 1 WHERE {engine.condition(HIVE)}", dialect=dialect)
    nothing = engine.condition(replace(scan, partitions=()))
    assert nothing == "1 = 0"
