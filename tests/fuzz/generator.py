"""Random star joins over a small schema, the same for the same seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

# table -> (data columns, partition columns), each with its kind of value
FACTS = {
    "f": ({"id": "int", "a": "int", "s": "string"}, {"ds": "string"}),
    "g": ({"id": "int", "a": "int"}, {"y": "int", "m": "int"}),
    "h": ({"id": "int", "s": "string"}, {"d": "date", "ds": "string"}),
}
DIMENSIONS = {
    "d": {"ds": "string", "y": "int", "m": "int", "a": "int"},
    "e": {"ds": "string", "d": "date", "y": "bigint", "s": "string"},
    "i": {"a": "int", "m": "int", "s": "string"},
}
STRINGS = ["p", "q", "r", "it's", "a b", "zz", ""]
DATES = ["2020-01-01", "2020-01-02", "2020-02-01"]
JOINS = (
    ["JOIN"] * 6
    + ["LEFT JOIN", "RIGHT JOIN"] * 2
    + ["FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
)


@dataclass
class Relation:
    """A relation in FROM: its text, alias and visible columns by kind."""

    text: str
    alias: str
    columns: dict[str, str]
    keys: set[str] = field(default_factory=set)


def setup(spark, seed: int) -> None:
    """The tables, filled at random: NULLs, duplicates, keys without partitions."""
    rng = random.Random(seed)
    for table, (data, partitions) in FACTS.items():
        columns = {**data, **partitions}
        spark.createDataFrame(
            [tuple(value(rng, kind) for kind in columns.values()) for _ in range(40)],
            ", ".join(
                f"{name} {'string' if kind == 'date' else kind}" for name, kind in columns.items()
            ),
        ).createOrReplaceTempView("rows")
        casts = ", ".join(f"CAST({name} AS {kind}) {name}" for name, kind in columns.items())
        frame = spark.sql(f"SELECT {casts} FROM rows")
        frame.coalesce(1).write.mode("overwrite").partitionBy(*partitions).saveAsTable(table)
    for table, columns in DIMENSIONS.items():
        spark.createDataFrame(
            [tuple(value(rng, kind) for kind in columns.values()) for _ in range(9)],
            ", ".join(
                f"{name} {'string' if kind == 'date' else kind}" for name, kind in columns.items()
            ),
        ).createOrReplaceTempView("rows")
        casts = ", ".join(f"CAST({name} AS {kind}) {name}" for name, kind in columns.items())
        spark.sql(f"SELECT {casts} FROM rows").coalesce(1).write.mode("overwrite").saveAsTable(
            table
        )


def value(rng: random.Random, kind: str):
    if rng.random() < 0.12:
        return None
    if kind == "string":
        return rng.choice(STRINGS)
    if kind == "date":
        return rng.choice(DATES)
    return rng.randrange(5)


def query(seed: int) -> str:
    """One statement."""
    rng = random.Random(seed)
    block = _block(rng, depth=0)
    shape = rng.random()
    if shape < 0.08:
        return f"WITH c AS ({block}) SELECT * FROM c"
    if shape < 0.14:
        return f"SELECT count(*), min(x0) FROM ({block}) AS z"
    return block


def _block(rng: random.Random, depth: int) -> str:
    relations = [_relation(rng, 0, depth)]
    text = relations[0].text
    visible = list(relations)
    for number in range(1, rng.choice([2, 2, 3, 3, 4])):
        right = _relation(rng, number, depth)
        kind = rng.choice(JOINS)
        if kind == "JOIN" and rng.random() < 0.2 and not any(" ON " in word for word in [text]):
            text = f"{text}, {right.text}"
            visible.append(right)
            continue
        conditions = _links(rng, visible, right)
        for _ in range(rng.choice([0, 0, 1, 2])):
            conditions.append(_filter(rng, rng.choice([*visible, right])))
        text = f"{text} {kind} {right.text} ON {' AND '.join(conditions)}"
        if "SEMI" not in kind and "ANTI" not in kind:
            visible.append(right)
    where = [_filter(rng, rng.choice(visible)) for _ in range(rng.choice([0, 1, 1, 2]))]
    if len(visible) > 1:
        for right in visible[1:]:
            if f"{right.alias}." not in text:
                where += _links(rng, [other for other in visible if other is not right], right)
    columns = [(relation.alias, name) for relation in visible for name in relation.columns]
    chosen = [columns[rng.randrange(len(columns))] for _ in range(rng.choice([2, 3, 4]))]
    chosen += [(relation.alias, key) for relation in visible for key in sorted(relation.keys)]
    names = [f"{alias}.{name}" for alias, name in dict.fromkeys(chosen)]
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    if rng.random() < 0.2:
        keys = names[: max(1, len(names) - 1)]
        listed = ", ".join(f"{name} AS x{n}" for n, name in enumerate(keys))
        return f"SELECT {listed}, count(*) AS n FROM {text}{condition} GROUP BY {', '.join(keys)}"
    listed = ", ".join(f"{name} AS x{n}" for n, name in enumerate(names))
    return f"SELECT {listed} FROM {text}{condition}"


def _relation(rng: random.Random, number: int, depth: int) -> Relation:
    alias = f"t{number}_{depth}"
    draw = rng.random()
    if draw < 0.5 or (number == 0 and draw < 0.65):
        table = rng.choice(list(FACTS))
        data, partitions = FACTS[table]
        columns = {**data, **partitions}
        if depth == 0 and rng.random() < 0.3:
            return _over_fact(rng, table, columns, alias)
        return Relation(f"{table} AS {alias}", alias, columns, set(partitions))
    table = rng.choice(list(DIMENSIONS))
    columns = DIMENSIONS[table]
    if rng.random() < 0.25:
        inner = Relation("", table, columns)
        listed = ", ".join(columns)
        distinct = rng.choice(["", "DISTINCT "])
        text = f"(SELECT {distinct}{listed} FROM {table} WHERE {_filter(rng, inner)}) AS {alias}"
        return Relation(text, alias, columns)
    return Relation(f"{table} AS {alias}", alias, columns)


def _over_fact(rng: random.Random, table: str, columns: dict[str, str], alias: str) -> Relation:
    """A subquery over a fact table: renames, filters, groups, joins inside, changed values."""
    inner = Relation("", "b", columns)
    condition = _filter(rng, inner)
    listed = ", ".join(f"b.{name}" for name in columns)
    keys = set(FACTS[table][1])
    shapes = [
        f"SELECT {listed} FROM {table} b WHERE {condition}",
        f"SELECT DISTINCT {listed} FROM {table} b",
        f"SELECT {', '.join(f'max(b.{n}) AS {n}' if n not in keys else f'b.{n}' for n in columns)} "
        f"FROM {table} b GROUP BY {', '.join(f'b.{n}' for n in sorted(keys))}",
        f"SELECT {', '.join(f'max(b.{n}) AS {n}' for n in columns)} FROM {table} b GROUP BY b.id",
        f"SELECT {listed} FROM i x LEFT JOIN {table} b ON x.m = b.id AND {condition}",
        f"SELECT {listed} FROM {table} b FULL JOIN i x ON x.m = b.id",
        f"SELECT {listed} FROM i x RIGHT JOIN {table} b ON x.m = b.id WHERE {condition}",
        f"SELECT {', '.join(f'coalesce(b.{n}, b.{n}) AS {n}' for n in columns)} FROM {table} b",
    ]
    return Relation(f"({rng.choice(shapes)}) AS {alias}", alias, columns)


def _links(rng: random.Random, left: list[Relation], right: Relation) -> list[str]:
    """One or two comparisons between the right relation and those to its left."""
    pairs = [
        (other, mine, theirs)
        for other in left
        for theirs, kind in other.columns.items()
        for mine, kind_of_mine in right.columns.items()
        if kind.replace("big", "") == kind_of_mine.replace("big", "")
    ]
    if not pairs:
        return ["1 = 1"]
    liked = [pair for pair in pairs if pair[1] in right.keys or pair[2] in pair[0].keys]
    found = []
    for _ in range(rng.choice([1, 1, 2])):
        other, mine, theirs = rng.choice(liked if liked and rng.random() < 0.75 else pairs)
        a, b = f"{other.alias}.{theirs}", f"{right.alias}.{mine}"
        if rng.random() < 0.5:
            a, b = b, a
        draw = rng.random()
        if draw < 0.8:
            found.append(f"{a} = {b}")
        elif draw < 0.85:
            found.append(f"{a} <=> {b}")
        elif draw < 0.9:
            found.append(f"{a} <= {b}")
        elif draw < 0.95:
            found.append(f"coalesce({a}, {b}) = {b}")
        else:
            found.append(f"({a} = {b} OR {a} IS NULL)")
    return found


def _filter(rng: random.Random, relation: Relation) -> str:
    name, kind = rng.choice(list(relation.columns.items()))
    column = f"{relation.alias}.{name}"
    if kind == "string":
        literal = "'" + rng.choice(STRINGS).replace("'", "\\'") + "'"
    elif kind == "date":
        literal = f"DATE'{rng.choice(DATES)}'"
    else:
        literal = str(rng.randrange(5))
    return rng.choice(
        [
            f"{column} = {literal}",
            f"{column} >= {literal}",
            f"{column} <> {literal}",
            f"{column} IS NULL",
            f"{column} IS NOT NULL",
            f"coalesce({column}, {literal}) = {literal}",
            f"({column} = {literal} OR {column} IS NULL)",
            f"NOT ({column} = {literal})",
        ]
    )
