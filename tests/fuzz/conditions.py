"""Random conditions: links between relations, filters, subqueries."""

from __future__ import annotations

import random

from tests.fuzz.schema import DIMENSIONS, FACTS, Relation, alike, literal


def equalities(
    rng: random.Random, left: Relation, right: Relation, only: set[str] | None = None
) -> list[str]:
    """One or two bare equalities of like types; ``only`` bounds the left columns."""
    pairs = [
        f"{left.alias}.{mine} = {right.alias}.{theirs}"
        for mine, kind in left.columns.items()
        for theirs, other in right.columns.items()
        if alike(kind) == alike(other) and (only is None or mine in only)
    ]
    return rng.sample(pairs, min(len(pairs), rng.choice([1, 1, 2])))


def links(rng: random.Random, left: list[Relation], right: Relation) -> list[str]:
    """One or two comparisons between the right relation and those to its left."""
    pairs = [
        (other, mine, theirs, kind)
        for other in left
        for theirs, kind in other.columns.items()
        for mine, kind_of_mine in right.columns.items()
        if alike(kind) == alike(kind_of_mine)
    ]
    if not pairs:
        return ["1 = 1"]
    liked = [pair for pair in pairs if pair[1] in right.keys or pair[2] in pair[0].keys]
    found = []
    for _ in range(rng.choice([1, 1, 2])):
        other, mine, theirs, kind = rng.choice(liked if liked and rng.random() < 0.8 else pairs)
        a, b = f"{other.alias}.{theirs}", f"{right.alias}.{mine}"
        if rng.random() < 0.5:
            a, b = b, a
        found.append(f"{a} = {b}" if rng.random() < 0.55 else _comparison(rng, a, b, kind))
    return found


def _comparison(rng: random.Random, a: str, b: str, kind: str) -> str:
    forms = [
        f"{a} <=> {b}",
        f"{a} <= {b}",
        f"{a} > {b}",
        f"coalesce({a}, {b}) = {b}",
        f"({a} = {b} OR {a} IS NULL)",
        f"({a} = {b} OR {b} = {literal(rng, kind)})",
        f"CAST({a} AS STRING) = CAST({b} AS STRING)",
        f"{a} BETWEEN {b} AND {literal(rng, kind)}",
        f"{b} BETWEEN {literal(rng, kind)} AND {a}",
        f"{a} IN ({b}, {literal(rng, kind)})",
        f"({a}, 1) = ({b}, 1)",
        f"NOT ({a} = {b})",
        f"({a} IS NULL AND {b} IS NULL)",
        f"nvl({a}, {literal(rng, kind)}) = nvl({b}, {literal(rng, kind)})",
    ]
    if kind == "string":
        forms += [
            f"substr({a}, 1, 1) = substr({b}, 1, 1)",
            f"concat({a}, 'x') = concat({b}, 'x')",
            f"{a} LIKE concat({b}, '%')",
            f"upper({a}) = upper({b})",
        ]
    if alike(kind) == "number":
        forms += [f"{a} + 1 = {b}", f"{a} * 2 > {b} + 1", f"abs({a} - {b}) <= 1"]
    if kind == "date":
        forms += [f"month({a}) = month({b})", f"date_add({a}, 1) = {b}", f"year({a}) < year({b})"]
    return rng.choice(forms)


def simple_filter(rng: random.Random, relation: Relation) -> str:
    """A comparison of one column with a literal."""
    name, kind = rng.choice(list(relation.columns.items()))
    comparison = rng.choice(["=", "=", ">=", "<>"])
    return f"{relation.alias}.{name} {comparison} {literal(rng, kind)}"


def filter_(rng: random.Random, relation: Relation) -> str:
    """A condition on one relation."""
    name, kind = rng.choice(list(relation.columns.items()))
    column, value = f"{relation.alias}.{name}", literal(rng, kind)
    return rng.choice(
        [
            f"{column} = {value}",
            f"{column} >= {value}",
            f"{column} <> {value}",
            f"{column} IS NULL",
            f"{column} IS NOT NULL",
            f"{column} IN ({value}, {literal(rng, kind)})",
            f"coalesce({column}, {value}) = {value}",
            f"({column} = {value} OR {column} IS NULL)",
            f"NOT ({column} = {value})",
            f"CAST({column} AS STRING) LIKE '%0%'",
        ]
    )


def either(rng: random.Random, first: Relation, second: Relation) -> str:
    """An OR of which each branch has conditions on one relation or on both."""
    branches = []
    for _ in range(rng.choice([2, 2, 3])):
        read = rng.choice([[first], [second], [first, second], [first, second]])
        parts = [filter_(rng, relation) for relation in read]
        if first is not second and rng.random() < 0.3:
            parts += links(rng, [first], second)
        branches.append(f"({' AND '.join(parts)})")
    return f"({' OR '.join(branches)})"


def subquery(rng: random.Random, outer: Relation) -> str:
    """IN, EXISTS, their negations, or a comparison with one value."""
    over_fact = rng.random() < 0.35
    table = rng.choice(list(FACTS if over_fact else DIMENSIONS))
    columns = {**FACTS[table][0], **FACTS[table][1]} if over_fact else DIMENSIONS[table]
    inner = Relation(f"{table} AS z", "z", columns, set(FACTS[table][1]) if over_fact else set())
    condition = filter_(rng, inner)
    pairs = [
        (mine, theirs)
        for mine, kind in outer.columns.items()
        for theirs, other in columns.items()
        if alike(kind) == alike(other)
    ]
    if not pairs:
        return "1 = 1"
    liked = [pair for pair in pairs if pair[0] in outer.keys or pair[1] in inner.keys]
    mine, theirs = rng.choice(liked or pairs)
    column = f"{outer.alias}.{mine}"
    return rng.choice(
        [
            f"{column} IN (SELECT z.{theirs} FROM {inner.text} WHERE {condition})",
            f"{column} IN (SELECT {theirs} FROM {table})",
            f"{column} NOT IN (SELECT z.{theirs} FROM {inner.text} WHERE {condition})",
            f"EXISTS (SELECT 1 FROM {inner.text} WHERE {column} = z.{theirs} AND {condition})",
            f"EXISTS (SELECT 1 FROM {inner.text} WHERE {column} <= z.{theirs})",
            f"NOT EXISTS (SELECT 1 FROM {inner.text} WHERE {column} = z.{theirs} AND {condition})",
            f"{column} = (SELECT max(z.{theirs}) FROM {inner.text} WHERE {condition})",
            f"{column} >= (SELECT min(z.{theirs}) FROM {inner.text})",
            f"{column} IN (SELECT max(z.{theirs}) FROM {inner.text} GROUP BY z.{theirs})",
            f"{column} BETWEEN (SELECT min(z.{theirs}) FROM {inner.text} WHERE {condition}) "
            f"AND (SELECT max(z.{theirs}) FROM {inner.text})",
            f"{column} BETWEEN (SELECT min(z.{theirs}) FROM {inner.text} WHERE {condition}) "
            f"AND {column}",
            f"{column} IN ((SELECT max(z.{theirs}) FROM {inner.text}), {column})",
            f"NOT ({column} < (SELECT max(z.{theirs}) FROM {inner.text} WHERE {condition}))",
        ]
    )
