"""The tables that random queries read, filled at random."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

# table -> (data columns, partition columns), each with its type
FACTS = {
    "f": ({"id": "int", "a": "int", "s": "string"}, {"ds": "string"}),
    "g": ({"id": "int", "a": "int"}, {"y": "int", "m": "int"}),
    "h": ({"id": "int", "s": "string"}, {"d": "date", "ds": "string"}),
    "k": ({"id": "int", "a": "int"}, {"n": "decimal(5,2)", "b": "boolean"}),
}
DIMENSIONS = {
    "d": {"ds": "string", "y": "int", "m": "int", "a": "int"},
    "e": {"ds": "string", "d": "date", "y": "bigint", "s": "string"},
    "i": {"a": "int", "m": "int", "s": "string"},
    "o": {"n": "decimal(5,2)", "m": "int", "b": "boolean", "d": "date"},
}
STRINGS = ["p", "q", "r", "it's", "a b", "zz", ""]
DATES = ["2020-01-01", "2020-01-02", "2020-02-01"]
FACT_ROWS, DIMENSION_ROWS = 40, 8


@dataclass
class Relation:
    """A relation in FROM: its text, alias and visible columns by type.

    ``keys`` are partition columns; ``plain`` says that it is the fact table itself.
    """

    text: str
    alias: str
    columns: dict[str, str]
    keys: set[str] = field(default_factory=set)
    plain: bool = False


def setup(spark, seed: int) -> None:
    """The tables: NULLs, duplicates, keys without partitions; ``id`` numbers the rows of a fact."""
    rng = random.Random(seed)
    for table, (data, partitions) in FACTS.items():
        columns = {**data, **partitions}
        rows = [
            (number, *(value(rng, kind) for kind in list(columns.values())[1:]))
            for number in range(FACT_ROWS)
        ]
        frame = _typed(spark, columns, rows).coalesce(1)
        frame.write.mode("overwrite").partitionBy(*partitions).saveAsTable(table)
    for table, columns in DIMENSIONS.items():
        rows = [tuple(value(rng, kind) for kind in columns.values()) for _ in range(DIMENSION_ROWS)]
        _typed(spark, columns, rows).coalesce(1).write.mode("overwrite").saveAsTable(table)


def _typed(spark, columns: dict[str, str], rows: list[tuple]):
    texts = [tuple(None if v is None else str(v) for v in row) for row in rows]
    schema = ", ".join(f"{name} string" for name in columns)
    casts = [f"CAST({name} AS {kind}) AS {name}" for name, kind in columns.items()]
    return spark.createDataFrame(texts, schema).selectExpr(*casts)


def value(rng: random.Random, kind: str):
    """A value's text or number, some of them NULL."""
    if rng.random() < 0.12:
        return None
    if kind == "string":
        return rng.choice(STRINGS)
    if kind == "date":
        return rng.choice(DATES)
    if kind == "boolean":
        return rng.choice(["true", "false"])
    if kind.startswith("decimal"):
        return rng.choice(["1.00", "2.00", "3.50", "0.00"])
    return rng.randrange(5)


def literal(rng: random.Random, kind: str) -> str:
    """A value in SQL, never NULL."""
    if kind == "string":
        return "'" + rng.choice(STRINGS).replace("'", "\\'") + "'"
    if kind == "date":
        return f"DATE'{rng.choice(DATES)}'"
    if kind == "boolean":
        return rng.choice(["true", "false"])
    if kind.startswith("decimal"):
        return f"CAST({rng.choice(['1.00', '3.50', '2'])} AS {kind})"
    return str(rng.randrange(5))


def alike(kind: str) -> str:
    """Types that can be compared without a cast."""
    return "number" if kind in ("int", "bigint") or kind.startswith("decimal") else kind
