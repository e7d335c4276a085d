"""Queries inside queries: a fact table behind outer joins, its columns filled or changed."""

from __future__ import annotations

import random

from tests.fuzz import conditions
from tests.fuzz.schema import DIMENSIONS, FACTS, Relation, literal

_KINDS = ["LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]


def behind_outer_join(rng: random.Random, table: str, depth: int = 0) -> str:
    """A query with the fact's column names, a third of the columns not as the table has them."""
    data, partitions = FACTS[table]
    columns = {**data, **partitions}
    nested = depth < 2 and rng.random() < 0.3
    text = f"({behind_outer_join(rng, table, depth + 1)})" if nested else table
    fact = Relation(f"{text} b", "b", columns, set(partitions))
    name = rng.choice(list(DIMENSIONS))
    other = Relation(f"{name} x", "x", DIMENSIONS[name])
    left, right = rng.sample([fact, other], 2)
    on = conditions.links(rng, [left], right)
    if rng.random() < 0.4:
        on.append(conditions.filter_(rng, rng.choice([left, right])))
    listed = ", ".join(f"{_column(rng, n, k, other)} AS {n}" for n, k in columns.items())
    where = ""
    if rng.random() < 0.4:
        where = f" WHERE {conditions.filter_(rng, rng.choice([left, right]))}"
    kind = rng.choice(_KINDS)
    return f"SELECT {listed} FROM {left.text} {kind} {right.text} ON {' AND '.join(on)}{where}"


def _column(rng: random.Random, name: str, kind: str, other: Relation) -> str:
    if rng.random() < 0.65:
        return f"b.{name}"
    value = literal(rng, kind)
    alike = [f"x.{theirs}" for theirs, type_ in other.columns.items() if type_ == kind]
    witness = rng.choice(["b.id", *(f"x.{theirs}" for theirs in other.columns)])
    return rng.choice(
        [
            f"coalesce(b.{name}, {value})",
            f"coalesce(b.{name}, {rng.choice(alike or ['NULL'])})",
            f"coalesce({rng.choice(alike or ['NULL'])}, b.{name})",
            f"CASE WHEN {witness} IS NULL THEN {value} ELSE b.{name} END",
            f"CASE WHEN {witness} IS NOT NULL THEN b.{name} END",
            f"nullif(b.{name}, {value})",
            f"CAST(NULL AS {kind})",
            value,
        ]
    )


def over_join(rng: random.Random, table: str, alias: str, ctes: list[str]) -> Relation:
    """A fact joined inside with a dimension, one column of which is visible outside as ``z``."""
    data, partitions = FACTS[table]
    fact = Relation(f"{table} b", "b", {**data, **partitions}, set(partitions))
    name = rng.choice(list(DIMENSIONS))
    other = Relation(f"{name} x", "x", DIMENSIONS[name])
    theirs, kind = rng.choice(list(other.columns.items()))
    value = literal(rng, kind)
    seen = rng.choice([f"x.{theirs}"] * 4 + [f"coalesce(x.{theirs}, {value})"])
    bodies = [_joined(rng, fact, other, seen) for _ in range(rng.choice([1, 1, 1, 2]))]
    text = rng.choice([" UNION ALL ", " UNION "]).join(bodies)
    columns = {"id": "int", "z": kind}
    if rng.random() < 0.3:
        ctes.append(f"c{alias} AS ({text})")
        return Relation(f"c{alias} AS {alias}", alias, columns)
    return Relation(f"({text}) AS {alias}", alias, columns)


def _joined(rng: random.Random, fact: Relation, other: Relation, seen: str) -> str:
    kind = rng.choice(["JOIN"] * 4 + _KINDS)
    on = conditions.equalities(rng, fact, other, only=fact.keys) or conditions.links(
        rng, [fact], other
    )
    where = f" WHERE {conditions.filter_(rng, fact)}" if rng.random() < 0.2 else ""
    from_ = f"FROM {fact.text} {kind} {other.text} ON {' AND '.join(on)}{where}"
    return rng.choice(
        [
            f"SELECT b.id, {seen} AS z {from_}",
            f"SELECT b.id, {seen} AS z {from_}",
            f"SELECT DISTINCT b.id AS id, {seen} AS z {from_}",
            f"SELECT max(b.id) AS id, {seen} AS z {from_} GROUP BY {seen}",
            f"SELECT count(*) AS id, max({seen}) AS z {from_} GROUP BY {seen}",
            f"SELECT max(b.id) AS id, max({seen}) AS z {from_}",
            f"SELECT CAST(count(*) OVER () AS INT) AS id, {seen} AS z {from_}",
            f"SELECT CAST(count(*) OVER (PARTITION BY {seen}) AS INT) AS id, {seen} AS z {from_}",
            f"SELECT max(max(b.id)) OVER (PARTITION BY {seen}) AS id, {seen} AS z {from_} "
            f"GROUP BY {seen}, b.id",
        ]
    )
