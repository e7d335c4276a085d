"""Random MERGE, UPDATE and DELETE over the tables of the random queries."""

from __future__ import annotations

import random

from tests.fuzz.schema import DIMENSIONS, FACTS, literal


def change(rng: random.Random, name: str, table: str) -> str:
    """A statement that changes ``table``, which has the columns of the fact ``name``."""
    data, partitions = FACTS[name]
    columns = {**data, **partitions}
    dimension = rng.choice(_joinable(columns))
    if rng.random() < 0.6:
        return _merge(rng, table, columns, dimension)
    where = _where(rng, columns, dimension)
    if rng.random() < 0.5:
        return f"DELETE FROM {table} t WHERE {where}"
    column = rng.choice(list(columns))
    value = "NULL" if rng.random() < 0.2 else literal(rng, columns[column])
    return f"UPDATE {table} t SET t.{column} = {value} WHERE {where}"


def _joinable(columns: dict[str, str]) -> list[str]:
    return [name for name, its in DIMENSIONS.items() if _shared(columns, its)]


def _shared(columns: dict[str, str], others: dict[str, str]) -> list[str]:
    return [name for name in columns if name in others]


def _equalities(rng: random.Random, columns: dict[str, str], dimension: str) -> list[str]:
    shared = _shared(columns, DIMENSIONS[dimension])
    chosen = rng.sample(shared, rng.randint(1, len(shared)))
    signs = ["=", "=", "=", "=", "<=>", "<="]
    return [f"t.{name} {rng.choice(signs)} s.{name}" for name in chosen]


def _extra(rng: random.Random, alias: str, columns: dict[str, str]) -> str:
    name = rng.choice(list(columns))
    sign = rng.choice(["=", "<>", ">=", "<"])
    condition = f"{alias}.{name} {sign} {literal(rng, columns[name])}"
    return rng.choice([condition, condition, f"{alias}.{name} IS NOT NULL", f"NOT ({condition})"])


def _merge(rng: random.Random, table: str, columns: dict[str, str], dimension: str) -> str:
    its = DIMENSIONS[dimension]
    shared = _shared(columns, its)
    chosen = rng.sample(shared, rng.randint(1, len(shared)))
    others = [name for name in shared if name not in chosen]
    # one row for each key, mostly: MERGE must not match a row twice
    largest = ", ".join([*chosen, *(f"max({name}) AS {name}" for name in others)])
    source = f"(SELECT {largest} FROM {dimension} GROUP BY {', '.join(chosen)})"
    if rng.random() < 0.15:
        source = dimension
    its = {name: its[name] for name in shared}
    signs = ["="] * 12 + ["<=>", "<="]
    on = [f"t.{name} {rng.choice(signs)} s.{name}" for name in chosen]
    on += [_extra(rng, "t", columns)] if rng.random() < 0.3 else []
    on += [_extra(rng, "s", its)] if rng.random() < 0.3 else []
    rng.shuffle(on)
    condition = " AND ".join(on)
    if rng.random() < 0.1:
        condition = f"({condition}) OR {_extra(rng, 's', its)}"
    listed = ", ".join(shared)
    clauses = []
    column = rng.choice(list(columns))
    if rng.random() < 0.8:
        also = f" AND {_extra(rng, 't', columns)}" if rng.random() < 0.4 else ""
        clauses.append(f"WHEN MATCHED{also} THEN {rng.choice(['DELETE', _set(rng, column, its)])}")
    if rng.random() < 0.7 or not clauses:
        values = ", ".join(f"s.{name}" for name in shared)
        clauses.append(f"WHEN NOT MATCHED THEN INSERT (id, {listed}) VALUES (-1, {values})")
    if rng.random() < 0.15:
        clauses.append("WHEN NOT MATCHED BY SOURCE THEN DELETE")
    return f"MERGE INTO {table} t USING {source} s ON {condition} {' '.join(clauses)}"


def _set(rng: random.Random, column: str, its: dict[str, str]) -> str:
    value = f"s.{column}" if column in its and rng.random() < 0.5 else "NULL"
    return f"UPDATE SET t.{column} = {value}"


def _where(rng: random.Random, columns: dict[str, str], dimension: str) -> str:
    shared = _shared(columns, DIMENSIONS[dimension])
    name = rng.choice(shared)
    inner = f" WHERE {_extra(rng, 's', DIMENSIONS[dimension])}" if rng.random() < 0.5 else ""
    found = rng.choice(
        [
            f"t.{name} IN (SELECT s.{name} FROM {dimension} s{inner})",
            f"t.{name} IN (SELECT s.{name} FROM {dimension} s{inner})",
            f"t.{name} NOT IN (SELECT s.{name} FROM {dimension} s{inner})",
            f"EXISTS (SELECT 1 FROM {dimension} s WHERE "
            f"{' AND '.join(_equalities(rng, columns, dimension))})",
            f"NOT EXISTS (SELECT 1 FROM {dimension} s WHERE s.{name} = t.{name})",
            f"t.{name} = (SELECT min(s.{name}) FROM {dimension} s{inner})",
        ]
    )
    if rng.random() < 0.3:
        found = f"{found} {rng.choice(['AND', 'AND', 'OR'])} {_extra(rng, 't', columns)}"
    return found
