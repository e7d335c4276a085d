"""Random star and snowflake joins over a small schema, the same for the same seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.fuzz import answered, conditions
from tests.fuzz.nested import behind_outer_join, over_join
from tests.fuzz.schema import DIMENSIONS, FACTS, Relation, literal
from tests.fuzz.shared import read_several_times

JOINS = (
    ["JOIN"] * 6
    + ["LEFT JOIN", "RIGHT JOIN"] * 2
    + ["FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
)


@dataclass(frozen=True)
class Scan:
    """A fact table in the outermost FROM, and where its row number and keys are in the output."""

    alias: str
    table: str
    text: str
    row_number: int
    keys: tuple[int, ...]


@dataclass
class Query:
    """A statement; ``scans`` are those whose partitions can be told from the output.

    ``by_keys`` says that facts are joined only by equalities of partition columns and have no
    other conditions. The kept partitions should then be those that contribute rows.
    """

    sql: str
    scans: list[Scan] = field(default_factory=list)
    by_keys: bool = False

    def literal(self, conditions_of: dict[str, str]) -> str:
        """The statement with the partitions of each scan, by alias, written in."""
        sql = self.sql
        for scan in self.scans:
            inside = f"(SELECT * FROM {scan.table} WHERE {conditions_of[scan.alias]})"
            assert sql.count(scan.text) == 1
            sql = sql.replace(scan.text, f"{inside} AS {scan.alias}")
        return sql


def query(seed: int) -> Query:
    """One statement."""
    rng = random.Random(seed)
    if rng.random() < 0.2:
        return Query(answered.statement(rng))
    if rng.random() < 0.1:
        return Query(read_several_times(rng))
    block = _by_keys(rng) if rng.random() < 0.25 else _block(rng)
    shape = rng.random()
    if shape < 0.06:
        return Query(f"WITH c AS ({block.sql}) SELECT * FROM c")
    if shape < 0.1:
        return Query(f"SELECT count(*), min(x0) FROM ({block.sql}) AS z")
    return block


def _by_keys(rng: random.Random) -> Query:
    """A star or snowflake that selects by keys only."""
    table = rng.choice(list(FACTS))
    _, partitions = FACTS[table]
    columns = {**FACTS[table][0], **partitions}
    fact = Relation(f"{table} AS f", "f", columns, set(partitions), plain=True)
    text, conditions_, dimensions = fact.text, [], []
    for number in range(rng.choice([1, 1, 2])):
        name = rng.choice(list(DIMENSIONS))
        dimension = Relation(f"{name} AS d{number}", f"d{number}", DIMENSIONS[name])
        links = conditions.equalities(rng, fact, dimension, only=set(partitions))
        if not links:
            continue
        text = f"{text} JOIN {dimension.text} ON {' AND '.join(links)}"
        dimensions.append(dimension)
        if rng.random() < 0.4:
            other = rng.choice(list(DIMENSIONS))
            snow = Relation(f"{other} AS s{number}", f"s{number}", DIMENSIONS[other])
            links = conditions.equalities(rng, dimension, snow)
            if links:
                text = f"{text} JOIN {snow.text} ON {links[0]}"
                dimensions.append(snow)
    for dimension in dimensions:
        if rng.random() < 0.7:
            conditions_.append(conditions.simple_filter(rng, dimension))
    where = f" WHERE {' AND '.join(conditions_)}" if conditions_ else ""
    return _selecting(rng, [fact, *dimensions], f"{text}{where}", by_keys=bool(dimensions))


def _block(rng: random.Random) -> Query:
    ctes: list[str] = []
    relations = [_relation(rng, 0, ctes)]
    text = relations[0].text
    visible = list(relations)
    for number in range(1, rng.choice([2, 2, 3, 3, 4])):
        right = _relation(rng, number, ctes)
        kind = rng.choice(JOINS)
        if kind == "JOIN" and rng.random() < 0.2 and " ON " not in text:
            text = f"{text}, {right.text}"
            visible.append(right)
            continue
        found = conditions.links(rng, visible, right)
        for _ in range(rng.choice([0, 0, 1, 2])):
            found.append(conditions.filter_(rng, rng.choice([*visible, right])))
        text = f"{text} {kind} {right.text} ON {' AND '.join(found)}"
        if "SEMI" not in kind and "ANTI" not in kind:
            visible.append(right)
    where = [conditions.filter_(rng, rng.choice(visible)) for _ in range(rng.choice([0, 1, 1, 2]))]
    if len(visible) > 1:
        for right in visible[1:]:
            if f"{right.alias}." not in text:
                others = [other for other in visible if other is not right]
                where += conditions.links(rng, others, right)
    if len(visible) > 1 and rng.random() < 0.15:  # above outer joins, for instance
        where += conditions.links(rng, visible[:-1], visible[-1])
    if rng.random() < 0.15:
        where.append(conditions.either(rng, *rng.choices(visible, k=2)))
    if rng.random() < 0.3:
        where.append(conditions.subquery(rng, rng.choice(visible)))
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    if rng.random() < 0.15:
        columns = [f"{one.alias}.{name}" for one in visible for name in one.columns]
        keys = rng.sample(columns, min(len(columns), 2))
        listed = ", ".join(f"{name} AS x{n}" for n, name in enumerate(keys))
        group = f" GROUP BY {', '.join(keys)}"
        found = Query(f"SELECT {listed}, count(*) AS n FROM {text}{condition}{group}")
    else:
        found = _selecting(rng, visible, f"{text}{condition}", by_keys=False)
    if ctes:
        found.sql = f"WITH {', '.join(ctes)} {found.sql}"
    return found


def _selecting(rng: random.Random, visible: list[Relation], from_: str, *, by_keys: bool) -> Query:
    """SELECT with some columns, and of each fact the row number and the keys."""
    columns = [f"{relation.alias}.{name}" for relation in visible for name in relation.columns]
    names = rng.sample(columns, min(len(columns), 3))
    scans = []
    for relation in visible:
        if relation.keys and relation.text.endswith(f" AS {relation.alias}"):
            keys = [f"{relation.alias}.{key}" for key in relation.columns if key in relation.keys]
            names += [f"{relation.alias}.id", *keys]
            if relation.plain:
                at = len(names) - len(keys) - 1
                table = relation.text.partition(" ")[0]
                positions = tuple(range(at + 1, len(names)))
                scans.append(Scan(relation.alias, table, relation.text, at, positions))
    listed = ", ".join(f"{name} AS x{n}" for n, name in enumerate(names))
    return Query(f"SELECT {listed} FROM {from_}", scans, by_keys)


def _relation(rng: random.Random, number: int, ctes: list[str]) -> Relation:
    alias = f"t{number}"
    draw = rng.random()
    if draw < 0.5 or (number == 0 and draw < 0.65):
        table = rng.choice(list(FACTS))
        data, partitions = FACTS[table]
        columns = {**data, **partitions}
        if rng.random() < 0.2:
            return over_join(rng, table, alias, ctes)
        if rng.random() < 0.35:
            return _over_fact(rng, table, columns, alias, ctes)
        return Relation(f"{table} AS {alias}", alias, columns, set(partitions), plain=True)
    table = rng.choice(list(DIMENSIONS))
    columns = DIMENSIONS[table]
    if rng.random() < 0.35:
        return _over_dimension(rng, table, columns, alias, ctes)
    return Relation(f"{table} AS {alias}", alias, columns)


def _over_dimension(
    rng: random.Random, table: str, columns: dict[str, str], alias: str, ctes: list[str]
) -> Relation:
    """A small side that is no plain table."""
    inner = Relation("", table, columns)
    listed = ", ".join(columns)
    condition = conditions.filter_(rng, inner)
    shape = rng.randrange(5)
    if shape == 0:
        name, kind = rng.choice(list(columns.items()))
        rows = ", ".join(f"({literal(rng, kind)})" for _ in range(rng.choice([1, 3])))
        return Relation(f"(VALUES {rows}) AS {alias}({name})", alias, {name: kind})
    if shape == 1:
        name, kind = rng.choice(list(columns.items()))
        text = f"(SELECT max({name}) AS {name} FROM {table} WHERE {condition}) AS {alias}"
        return Relation(text, alias, {name: kind})
    if shape == 2:
        ctes.append(f"c{alias} AS (SELECT {listed} FROM {table} WHERE {condition})")
        return Relation(f"c{alias} AS {alias}", alias, columns)
    if shape == 3:
        other = conditions.filter_(rng, inner)
        both = " UNION ".join(f"SELECT {listed} FROM {table} WHERE {c}" for c in (condition, other))
        return Relation(f"({both}) AS {alias}", alias, columns)
    distinct = rng.choice(["", "DISTINCT "])
    text = f"(SELECT {distinct}{listed} FROM {table} WHERE {condition}) AS {alias}"
    return Relation(text, alias, columns)


def _over_fact(
    rng: random.Random, table: str, columns: dict[str, str], alias: str, ctes: list[str]
) -> Relation:
    """A query over a fact table: renames, filters, groups, joins inside, changed values, unions."""
    condition = conditions.filter_(rng, Relation("", "b", columns))
    listed = ", ".join(f"b.{name}" for name in columns)
    keys = set(FACTS[table][1])
    grouped = ", ".join(f"max(b.{n}) AS {n}" if n not in keys else f"b.{n}" for n in columns)
    changed = ", ".join(
        f"coalesce(b.{n}, b.{n}) AS {n}" if n in keys else f"b.{n}" for n in columns
    )
    filled = ", ".join(
        f"coalesce(b.{n}, {literal(rng, kind)}) AS {n}" if n in keys else f"b.{n}"
        for n, kind in columns.items()
    )
    shapes = [
        f"SELECT {listed} FROM {table} b WHERE {condition}",
        f"SELECT DISTINCT {listed} FROM {table} b",
        f"SELECT {grouped} FROM {table} b GROUP BY {', '.join(f'b.{n}' for n in sorted(keys))}",
        f"SELECT {', '.join(f'max(b.{n}) AS {n}' for n in columns)} FROM {table} b GROUP BY b.id",
        f"SELECT {listed} FROM i x LEFT JOIN {table} b ON x.m = b.id AND {condition}",
        f"SELECT {listed} FROM {table} b FULL JOIN i x ON x.m = b.id",
        f"SELECT {listed} FROM i x RIGHT JOIN {table} b ON x.m = b.id WHERE {condition}",
        f"SELECT {changed} FROM {table} b",
        f"SELECT {filled} FROM i x LEFT JOIN {table} b ON x.m = b.id",
        f"SELECT {listed} FROM {table} b WHERE {condition} UNION SELECT {listed} FROM {table} b",
        f"SELECT {listed} FROM {table} b UNION ALL SELECT {changed} FROM {table} b",
    ]
    shape = rng.choice([*shapes, *(behind_outer_join(rng, table) for _ in range(4))])
    if rng.random() < 0.3:
        ctes.append(f"c{alias} AS ({shape})")
        return Relation(f"c{alias} AS {alias}", alias, columns, keys)
    return Relation(f"({shape}) AS {alias}", alias, columns, keys)
