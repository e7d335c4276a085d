"""Random joins whose small tables mostly only choose partitions, in the shapes SQL has for them."""

from __future__ import annotations

import random

from tests.fuzz import conditions
from tests.fuzz.schema import DIMENSIONS, FACTS, Relation


def statement(rng: random.Random) -> str:
    """One statement; its columns are named ``x0``, ``x1``, ..."""
    shape = rng.random()
    block = _block(rng)
    if shape < 0.1:
        return f"{block} UNION ALL {_block(rng)}"
    if shape < 0.2:
        return f"WITH c AS ({block}) SELECT u.x0, v.x1 FROM c u JOIN c v ON u.x0 = v.x0"
    if shape < 0.3:
        name = rng.choice(list(DIMENSIONS))
        return f"SELECT z.x0, q.m AS x1 FROM ({block}) AS z JOIN {name} AS q ON q.a = z.x1"
    return block


def _block(rng: random.Random) -> str:
    table = rng.choice(list(FACTS))
    data, partitions = FACTS[table]
    fact = Relation(f"{table} AS f", "f", {**data, **partitions}, set(partitions))
    relations, joins, wheres = [fact], [], []
    shown = [f"f.{name}" for name in fact.columns]
    for number in range(rng.choice([1, 1, 2, 3])):
        name = rng.choice(list(DIMENSIONS))
        small = Relation(f"{name} AS d{number}", f"d{number}", DIMENSIONS[name])
        whole = number == 2 or rng.random() < 0.1
        links = conditions.equalities(rng, fact, small, only=None if whole else set(partitions))
        if not links:
            continue
        relations.append(small)
        if rng.random() < 0.2:
            shown += [link.rpartition(" = ")[2] for link in links]
        filters = [conditions.simple_filter(rng, small) for _ in range(rng.choice([0, 1, 1, 2]))]
        if rng.random() < 0.15:
            filters.append(conditions.filter_(rng, small))
        joins.append((small, links, filters))
    if rng.random() < 0.12:
        small = rng.choice(relations)
        shown += [f"{small.alias}.{name}" for name in small.columns]
    if rng.random() < 0.3:
        wheres.append(conditions.filter_(rng, fact))
    if rng.random() < 0.15:
        wheres.append(conditions.subquery(rng, rng.choice(relations)))
    if rng.random() < 0.1 and len(relations) > 1:
        wheres += conditions.links(rng, [fact], relations[-1])
    listed = rng.random() < 0.4
    from_ = fact.text
    for small, links, filters in joins:
        if listed:
            from_ = f"{small.text}, {from_}" if rng.random() < 0.3 else f"{from_}, {small.text}"
            wheres += [f"({link})" if rng.random() < 0.2 else link for link in links] + filters
            continue
        on = links + [one for one in filters if rng.random() < 0.5]
        wheres += [one for one in filters if one not in on]
        kind = "LEFT JOIN" if rng.random() < 0.06 else "JOIN"
        from_ = f"{from_} {kind} {small.text} ON {' AND '.join(on)}"
    rng.shuffle(wheres)
    where = f" WHERE {' AND '.join(wheres)}" if wheres else ""
    return _select(rng, shown, f"{from_}{where}")


def _select(rng: random.Random, shown: list[str], from_: str) -> str:
    names = rng.choices(shown, k=2)
    texts = [f"CAST({name} AS STRING)" if rng.random() < 0.2 else name for name in names]
    items = ", ".join(f"{text} AS x{number}" for number, text in enumerate(texts))
    shape = rng.random()
    if shape < 0.15:
        return f"SELECT {items}, count(*) AS n FROM {from_} GROUP BY {', '.join(names)}"
    if shape < 0.25:
        sets = rng.choice(["WITH ROLLUP", "WITH CUBE", f"GROUPING SETS (({names[0]}), ())"])
        plain = ", ".join(f"{name} AS x{number}" for number, name in enumerate(names))
        return f"SELECT {plain}, count(*) AS n FROM {from_} GROUP BY {', '.join(names)} {sets}"
    if shape < 0.35:
        return f"SELECT DISTINCT {items} FROM {from_} ORDER BY x0"
    if shape < 0.45:
        return f"SELECT {items}, count(*) OVER (PARTITION BY {names[1]}) AS w FROM {from_}"
    if shape < 0.6:
        return f"SELECT min({names[0]}) AS x0, count(DISTINCT {names[1]}) AS x1 FROM {from_}"
    return f"SELECT {items} FROM {from_}"
