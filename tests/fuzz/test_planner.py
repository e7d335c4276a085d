"""The planner's decisions on random statements, evaluated by DuckDB.

DuckDB runs the key queries and conditions of each decision, and the statement with and without the
partitions that they select. This tests the planner alone, without Spark.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import duckdb
import pytest

from airflow_hive_opt.pruning.decisions import KeySource, Layer, ScanDecision
from airflow_hive_opt.pruning.plan import Plan, plan
from airflow_hive_opt.pruning.rules import into_subqueries, skeletons
from airflow_hive_opt.statement.catalog import JsonCatalog, Table
from tests.fuzz.findings import SEED, case, count_of, differing, repeat, report
from tests.fuzz.star_statements import TABLES, Statements
from tests.pruning.catalogs import columns

STATEMENTS = count_of("FUZZ_STATEMENTS", 200)
CONTENTS = 2  # databases for each statement
CATALOG = JsonCatalog.of(
    [
        Table(
            f"default.{name}",
            columns(**dict.fromkeys(data, "int")),
            columns(**dict.fromkeys(partitions, "int")),
            total_bytes=None if partitions else 5000,
        )
        for name, (data, partitions) in TABLES.items()
    ]
)


def test_pruned_random_statements_have_the_plain_rows():
    pruned = dropped = 0
    wrong: list[str] = []
    rows = duckdb.connect(config={"threads": 1})
    for seed in range(SEED, SEED + STATEMENTS):
        sql = Statements(random.Random(seed)).statement()
        with case(f"statement {seed}", statement=sql) as finding:
            planned = plan(sql, CATALOG)
            if not any(decision.pruned for decision in planned.decisions):
                continue
            pruned += 1
            for number in range(CONTENTS):
                filled = fill(rows, random.Random(f"{seed} {number}"))
                restricted = restrict(sql, planned, rows)
                dropped += "/* fewer */" in restricted
                plain, ours = answer(rows, sql), answer(rows, restricted)
                if plain != ours:
                    shown = {"pruned": restricted, "tables": ";\n".join(filled)}
                    wrong.append(finding(**shown, **differing(plain, ours)))
    counted = (
        f"{pruned} of {STATEMENTS} statements are pruned, {dropped} runs read less, {repeat()}"
    )
    print(counted)
    assert not wrong, report(wrong, FUZZ_STATEMENTS=STATEMENTS)
    assert pruned > 0.8 * STATEMENTS, counted
    assert dropped > pruned * CONTENTS / 2, counted


def fill(rows: duckdb.DuckDBPyConnection, rng: random.Random) -> list[str]:
    """Tables with up to 20 rows; sometimes a table is empty, sometimes a value is NULL.

    Returns the statements that make them.
    """
    made = []
    for name, parts in TABLES.items():
        names = [column for part in parts for column in part]
        number = rng.choice([0, 1, 3, 6, 9, 12, 16, 20])
        values = (
            ", ".join("NULL" if rng.random() < 0.1 else str(rng.randint(0, 3)) for _ in names)
            for _ in range(number or 1)
        )
        listed = ", ".join(f"({row})" for row in values)
        typed = ", ".join(f"{column}::INT AS {column}" for column in names)
        made.append(
            f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {typed} "
            f"FROM (VALUES {listed}) v({', '.join(names)}) LIMIT {number}"
        )
        rows.execute(made[-1])
    return made


def answer(rows: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    return sorted(map(repr, rows.execute(sql).fetchall()))


def restrict(sql: str, planned: Plan, rows: duckdb.DuckDBPyConnection) -> str:
    """The statement with each pruned scan reduced to the partitions that the planner selects."""
    edits = []
    for decision in planned.decisions:
        if not decision.pruned or decision.relation is None:
            continue
        names = [column.name for column in decision.table.partition_columns]
        kept = set().union(*(selected(one, names, rows) for one in decision.separate()))
        every = _run(rows, f"SELECT {', '.join(names)} FROM {decision.table.short_name}")
        conditions = " OR ".join(f"({_equals(names, values)})" for values in kept) or "false"
        mark = " /* fewer */" if kept < every else ""
        alias = "" if decision.relation.aliased else f" AS {decision.relation.alias}"
        text = f"(SELECT * FROM {decision.relation.text} WHERE {conditions}{mark}){alias}"
        edits.append((decision.relation.reference, text))
    for span, text in sorted(edits, key=lambda edit: -edit[0].start):
        sql = sql[: span.start] + text + sql[span.stop :]
    return sql


def selected(
    decision: ScanDecision, names: Sequence[str], rows: duckdb.DuckDBPyConnection
) -> set[tuple[int | None, ...]]:
    """The partitions that one alternative selects."""
    (alternative,) = decision.alternatives
    listed = ", ".join(f"__{name}" for name in names)
    table = decision.table.short_name
    found = _run(rows, f"SELECT {', '.join(names)} FROM {table}")
    for condition in alternative.conditions:
        layers = _layers(table, names, condition.layers)
        found &= _run(rows, f"SELECT {listed} FROM {layers} WHERE {condition.sql}")
    for source in alternative.sources:
        layers = _layers(table, names, source.layers)
        on = " AND ".join(source.conditions)
        found &= _run(rows, f"SELECT {listed} FROM {layers}, {_keys(source)} WHERE {on}")
    return found


def _layers(table: str, names: Sequence[str], layers: Sequence[Layer]) -> str:
    """The partitions as the last layer shows them, with their values as ``__name`` too."""
    own = ", ".join(f"{name}, {name} AS __{name}" for name in names)
    text, alias = f"(SELECT DISTINCT {own} FROM {table})", layers[0].alias
    for layer in layers[1:]:
        shown = [f"__{name}" for name in names]
        shown += [f"{expression} AS `{name}`" for name, expression in layer.columns]
        text, alias = f"(SELECT {', '.join(shown)} FROM {text} AS `{alias}`)", layer.alias
    return f"{text} AS `{alias}`"


def _keys(source: KeySource) -> str:
    """The keys: one row for each tuple, with a struct for each alias that the conditions use."""
    sql = source.sql
    for view, table in source.skeletons:
        names = ", ".join(column.name for column in table.partition_columns)
        sql = sql.replace(f"`{view}`", f"(SELECT DISTINCT {names} FROM {table.short_name})")
    fields: dict[str, list[str]] = {}
    for number, column in enumerate(source.columns):
        fields.setdefault(column.alias, []).append(f"`{column.name}` := c{number}")
    structs = ", ".join(
        f"struct_pack({', '.join(packed)}) AS `{alias}`" for alias, packed in fields.items()
    )
    names = ", ".join(f"c{number}" for number, _ in enumerate(source.columns))
    return f"(SELECT {structs} FROM ({sql}) AS found ({names})) AS keys"


def _run(rows: duckdb.DuckDBPyConnection, sql: str) -> set[tuple[int | None, ...]]:
    return set(rows.execute(sql.replace("`", '"')).fetchall())


def _equals(names: Sequence[str], values: Sequence[int | None]) -> str:
    return " AND ".join(
        f"{name} IS NOT DISTINCT FROM {'NULL' if value is None else value}"
        for name, value in zip(names, values, strict=True)
    )


def test_the_fuzz_test_notices_an_unsound_rule(monkeypatch):
    """It notices if conditions pass all columns of aggregates and window functions."""
    for module in (into_subqueries, skeletons):
        monkeypatch.setattr(module, "same_for_group", lambda *_: True)
    with pytest.raises(AssertionError, match=f"of FUZZ_SEED={SEED} FUZZ_STATEMENTS=") as raised:
        test_pruned_random_statements_have_the_plain_rows()
    for part in ("statement: ", "pruned: ", "tables: CREATE", "plain: ", "ours: "):
        assert part in str(raised.value)
