"""Random statements that read one CTE several times, each time with other conditions."""

from __future__ import annotations

import random

from tests.fuzz import conditions
from tests.fuzz.nested import over_join
from tests.fuzz.schema import DIMENSIONS, FACTS, Relation


def read_several_times(rng: random.Random) -> str:
    """One statement; its columns are named ``x0``, ``x1``."""
    body, columns = _body(rng)
    listed = rng.random() < 0.2
    name = f"c ({', '.join(columns)})" if listed else "c"
    ctes = [f"{name} AS ({body})"]
    if rng.random() < 0.25:
        inner = _reader(rng, columns, "w", "c")
        ctes.append(f"c2 AS (SELECT {', '.join(columns)} FROM {inner})")
    names = ["c"] if len(ctes) == 1 else ["c", "c2", "c2"]
    return f"WITH {', '.join(ctes)} {_query(rng, columns, names)}"


def _query(rng: random.Random, columns: dict[str, str], names: list[str]) -> str:
    readers = [_reader(rng, columns, f"r{n}", rng.choice(names)) for n in range(3)]
    first, second, third = readers
    show = rng.sample(list(columns), 2)
    select = ", ".join(f"r0.{name} AS x{n}" for n, name in enumerate(show))
    key = rng.choice(list(columns))
    shape = rng.randrange(6)
    if shape == 0:
        both = rng.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
        other = select.replace("r0.", "r1.")
        return f"SELECT {select} FROM {first} {both} SELECT {other} FROM {second}"
    if shape == 1:
        kind = rng.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        on = f"r0.{key} = r1.{key}"
        if rng.random() < 0.5:
            on += f" AND {_condition(rng, columns, rng.choice(['r0', 'r1']))}"
        text = f"{_plain(rng, names, 'r0')} {kind} {_plain(rng, names, 'r1')} ON {on}"
        return f"SELECT {select} FROM {text} WHERE {_condition(rng, columns, 'r0')}"
    if shape == 2:
        word = rng.choice(["IN", "IN", "NOT IN"])
        subquery = f"SELECT r1.{key} FROM {second}"
        return f"SELECT {select} FROM (SELECT * FROM {first}) r0 WHERE r0.{key} {word} ({subquery})"
    if shape == 3:
        subquery = f"SELECT max(r1.{key}) FROM {second}"
        return f"SELECT {select} FROM (SELECT * FROM {first}) r0 WHERE r0.{key} = ({subquery})"
    if shape == 4:
        name = rng.choice(list(DIMENSIONS))
        small = Relation(f"{name} q", "q", DIMENSIONS[name])
        mine = Relation("", "r0", columns)
        links = " AND ".join(conditions.links(rng, [mine], small))
        chosen = conditions.simple_filter(rng, small)
        joined = f"{_plain(rng, names, 'r0')} JOIN {small.text} ON {links} AND {chosen}"
        other = select.replace("r0.", "r1.")
        return f"SELECT {select} FROM {joined} UNION ALL SELECT {other} FROM {second}"
    return (
        f"SELECT {select} FROM (SELECT * FROM {first} UNION ALL SELECT * FROM {second}) r0 "
        f"WHERE EXISTS (SELECT 1 FROM (SELECT * FROM {third}) r2 WHERE r2.{key} = r0.{key})"
    )


def _body(rng: random.Random) -> tuple[str, dict[str, str]]:
    table = rng.choice(list(FACTS))
    if rng.random() < 0.7:
        found = over_join(rng, table, "z", [])
        if found.text.startswith("("):
            return found.text.rpartition(")")[0][1:], found.columns
    data, partitions = FACTS[table]
    columns = {**data, **partitions}
    where = ""
    if rng.random() < 0.4:
        where = f" WHERE {conditions.filter_(rng, Relation('', 'b', columns))}"
    return f"SELECT {', '.join(f'b.{name}' for name in columns)} FROM {table} b{where}", columns


def _reader(rng: random.Random, columns: dict[str, str], alias: str, name: str) -> str:
    """A FROM item with a WHERE clause after it, mostly."""
    where = f" WHERE {_condition(rng, columns, alias)}" if rng.random() < 0.85 else ""
    return f"{name} {alias}{where}"


def _plain(rng: random.Random, names: list[str], alias: str) -> str:
    return f"{rng.choice(names)} {alias}"


def _condition(rng: random.Random, columns: dict[str, str], alias: str) -> str:
    relation = Relation("", alias, columns)
    choose = rng.choice([conditions.filter_, conditions.simple_filter, conditions.simple_filter])
    return choose(rng, relation)
