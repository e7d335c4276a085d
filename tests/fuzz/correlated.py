"""Random correlated queries over a small schema, the same for the same seed.

``t``, ``e`` (which is empty) and ``h`` (which is partitioned by ``j``) have the same columns; ``o``
and ``p`` are smaller tables to join them with. Keys have NULLs, duplicates, and values that the
other side lacks.
"""

from __future__ import annotations

import random

COLUMNS = {"k": "int", "j": "int", "v": "int", "d": "decimal(10,2)", "s": "string", "w": "date"}
SMALL = {"k": "int", "c": "int", "n": "string"}
_WORDS = ["a", "b", "it's", ""]
_DAYS = ["2020-01-01", "2020-01-02", "2020-02-01"]
_COMPARE = ["<", "<=", ">", ">=", "=", "<>"]


def setup(spark, seed: int) -> None:
    """The tables, filled at random."""
    rng = random.Random(seed)
    for name, columns, rows in (("t", COLUMNS, 70), ("o", SMALL, 14), ("p", SMALL, 9)):
        _table(spark, rng, name, columns, rows)
    _table(spark, rng, "e", COLUMNS, 0)
    _table(spark, rng, "h", COLUMNS, 70, partition="j")


def _table(
    spark,
    rng: random.Random,
    name: str,
    columns: dict[str, str],
    rows: int,
    partition: str | None = None,
) -> None:
    plain = ", ".join(
        f"{column} {'int' if kind == 'int' else 'string'}" for column, kind in columns.items()
    )
    values = [tuple(_value(rng, kind) for kind in columns.values()) for _ in range(rows)]
    casts = ", ".join(f"CAST({column} AS {kind}) {column}" for column, kind in columns.items())
    spark.createDataFrame(values, plain).createOrReplaceTempView("rows")
    frame = spark.sql(f"SELECT {casts} FROM rows").coalesce(1)
    frame.write.mode("overwrite").saveAsTable(name, partitionBy=partition)


def _value(rng: random.Random, kind: str):
    if rng.random() < 0.12:
        return None
    if kind == "int":
        return rng.randrange(6)
    if kind == "date":
        return rng.choice(_DAYS)
    return f"{rng.randrange(-300, 300) / 100:.2f}" if "decimal" in kind else rng.choice(_WORDS)


def query(seed: int) -> str:
    """One statement."""
    rng = random.Random(seed)
    shape = rng.choice([_lookups, _lookups, _lookups, _once, _once, _flat, _merged, _shared])
    return shape(rng, rng.choice(["t"] * 8 + ["e", "h"]))


def _condition(rng: random.Random, alias: str, columns: dict[str, str] = COLUMNS) -> str:
    name, kind = rng.choice(list(columns.items()))
    column = f"{alias}.{name}" if alias else name
    if kind == "int":
        literal = str(rng.randrange(6))
    elif kind == "date":
        literal = f"DATE'{rng.choice(_DAYS)}'"
    elif "decimal" in kind:
        literal = f"{rng.randrange(-200, 200) / 100:.2f}"
    else:
        literal = "'" + rng.choice(_WORDS).replace("'", "\\'") + "'"
    return rng.choice(
        [
            f"{column} {rng.choice(_COMPARE)} {literal}",
            f"{column} IS NULL",
            f"{column} IS NOT NULL",
            f"({column} = {literal} OR {column} IS NULL)",
            f"NOT ({column} = {literal})",
            f"{column} IN ({literal}, {literal})",
            f"coalesce({column}, {literal}) = {literal}",
        ]
    )


def _some(rng: random.Random, alias: str, columns: dict[str, str] = COLUMNS) -> list[str]:
    return [_condition(rng, alias, columns) for _ in range(rng.choice([0, 0, 1, 1, 2]))]


def _where(conditions: list[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _aggregate(rng: random.Random, alias: str) -> str:
    dot = f"{alias}." if alias else ""
    return rng.choice(
        [
            f"sum({dot}v)",
            f"avg({dot}d)",
            f"avg({dot}v)",
            f"min({dot}v)",
            f"max({dot}d)",
            "count(*)",
            f"count({dot}v)",
            f"sum({dot}d * ({dot}v - 1))",
            f"max({dot}v)",
        ]
    )


def _lookup(rng: random.Random, table: str, number: int, outer: str, joined: bool) -> str:
    """A condition that reads the table again; ``joined`` says that ``o`` is there, too."""
    inner = f"i{number}"
    key = f"{inner}.k = {outer}.k" if rng.random() < 0.7 else f"{outer}.k = {inner}.k"
    conditions = [key, *_some(rng, inner)]
    if rng.random() < 0.15:
        conditions.append(f"{inner}.j = a.j")
    draw = rng.random()
    if draw < 0.35:
        operator = rng.choice(_COMPARE)
        value = _aggregate(rng, inner)
        if rng.random() < 0.4:
            value = rng.choice([f"2 * {value}", f"{value} + 1", f"coalesce({value}, 3)"])
        scalar = f"(SELECT {value} FROM {table} {inner}{_where(conditions)})"
        left = rng.choice(["a.v", "a.d", "coalesce(a.v, 1)"])
        if rng.random() < 0.2:
            return f"({left} {operator} {scalar} OR a.v IS NULL)"
        if rng.random() < 0.1:
            return f"{left} NOT IN {scalar}"
        return f"{left} {operator} {scalar}"
    if draw < 0.8:
        if rng.random() < 0.7:
            column = rng.choice(["v", "v", "s", "w", "d"])
            operator = rng.choice(["<>", "<>", "<", ">", "<=", ">="])
            other = "o.c" if joined and column == "v" and rng.random() < 0.2 else f"a.{column}"
            pair = [f"{inner}.{column}", other]
            rng.shuffle(pair)
            conditions.append(f"{pair[0]} {operator} {pair[1]}")
        negated = rng.choice(["", "NOT "])
        return f"{negated}EXISTS (SELECT * FROM {table} {inner}{_where(conditions)})"
    return f"{outer}.k IN {_groups(rng, table)}"


def _groups(rng: random.Random, table: str) -> str:
    having = ""
    if rng.random() < 0.8:
        having = f" HAVING {_aggregate(rng, '')} {rng.choice(_COMPARE)} {rng.randrange(5)}"
    return f"(SELECT k FROM {table}{_where(_some(rng, ''))} GROUP BY k{having})"


def _lookups(rng: random.Random, table: str) -> str:
    """One block with one to three lookups, with and without other tables, outer joins too."""
    conditions = _some(rng, "a")
    outer = "a"
    from_ = f"{table} a"
    listed = ["a.k", "a.v", "a.s"]
    draw = rng.random()
    if draw < 0.4:
        from_ += ", o"
        conditions += ["o.k = a.k", *_some(rng, "o", SMALL)]
        outer = rng.choice(["a", "o"])
        listed.append("o.c")
    elif draw < 0.6:
        from_ += " JOIN o ON a.k = o.k"
        conditions += _some(rng, "o", SMALL)
        outer = rng.choice(["a", "o"])
    elif draw < 0.85:
        kind = rng.choice(["LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        from_ = f"{table} a {kind} o ON a.k = o.k"
        outer = rng.choice(["a", "a", "o"])
        if rng.random() < 0.3:
            from_ = f"o {kind} {table} a ON a.k = o.k"
    for number in range(rng.choice([1, 1, 2, 3])):
        conditions.append(_lookup(rng, table, number, outer, " o" in from_))
    rng.shuffle(conditions)
    if rng.random() < 0.25:
        return f"SELECT a.s, count(*) AS n, sum(a.d) FROM {from_}{_where(conditions)} GROUP BY a.s"
    return f"SELECT {', '.join(listed)} FROM {from_}{_where(conditions)}"


def _once(rng: random.Random, table: str) -> str:
    """Join with an aggregate of the table, then an aggregate of the join."""
    own = _some(rng, "") if rng.random() < 0.3 else []
    outside = [f"a.{each}" if each[0].isalpha() and " " in each else each for each in own]
    conditions = ["o.k = a.k", *_some(rng, "o", SMALL)]
    if all(each.split()[0].startswith("a.") and "coalesce" not in each for each in outside):
        conditions += outside
    else:
        own = []
    items = rng.sample(
        ["sum(a.v)", "sum(a.d)", "count(*)", "count(a.s)", "min(a.w)", "max(a.d)", "max(o.n)"],
        rng.choice([1, 2, 3]),
    )
    if rng.random() < 0.1:
        items.append(rng.choice(["avg(a.v)", "sum(o.c)", "count(o.c)", "count(DISTINCT a.v)"]))
    listed = [item if rng.random() < 0.5 else f"{item} AS x{n}" for n, item in enumerate(items)]
    keys = rng.choice(["o.c", "o.k, o.c", "a.k", "o.n, a.k"])
    from_ = ["o", f"{table} a"]
    if rng.random() < 0.3:
        from_.append("p")
        conditions.append("p.c = o.c")
    if rng.random() < 0.5:
        having = f" HAVING {_aggregate(rng, '')} {rng.choice(_COMPARE)} {rng.randrange(4)}"
        key = rng.choice(["o.k", "a.k"])
        conditions.append(f"{key} IN (SELECT k FROM {table}{_where(own)} GROUP BY k{having})")
    else:
        groups = f"SELECT k, {_aggregate(rng, '')} AS g FROM {table}{_where(own)} GROUP BY k"
        from_.append(f"({groups}) z")
        conditions += [rng.choice(["z.k = o.k", "z.k = a.k"]), f"z.g >= {rng.randrange(4)}"]
    rng.shuffle(from_)
    rng.shuffle(conditions)
    tail = rng.choice(["", "", f" HAVING count(*) > 1 ORDER BY {keys}"])
    return (
        f"SELECT {keys}, {', '.join(listed)} FROM {', '.join(from_)}{_where(conditions)} "
        f"GROUP BY {keys}{tail}"
    )


def _flat(rng: random.Random, table: str) -> str:
    """Joins an aggregate of the table with the table, or with a subquery on it."""
    value = rng.choice([_aggregate(rng, ""), f"2 * {_aggregate(rng, '')}"])
    groups = f"SELECT k AS gk, {value} AS g FROM {table}{_where(_some(rng, ''))} GROUP BY k"
    inside = ["o.k = a.k", *_some(rng, "a"), *_some(rng, "o", SMALL)]
    if rng.random() < 0.6:
        left = f"(SELECT a.k AS ak, a.v, a.d, o.c FROM {table} a, o{_where(inside)}) x"
        key, listed, compared = "x.ak", "x.ak, x.c, y.g", "x.d"
    else:
        left, key, listed, compared = f"{table} x", "x.k", "x.k, x.s, y.g", "x.d"
    conditions = [f"{compared} {rng.choice(_COMPARE)} y.g"] if rng.random() < 0.6 else []
    if rng.random() < 0.6:
        pair = [left, f"({groups}) y"]
        rng.shuffle(pair)
        return f"SELECT {listed} FROM {', '.join(pair)}{_where([f'y.gk = {key}', *conditions])}"
    kind = rng.choice(["JOIN", "JOIN", "LEFT JOIN", "FULL JOIN"])
    return f"SELECT {listed} FROM {left} {kind} ({groups}) y ON {key} = y.gk{_where(conditions)}"


def _merged(rng: random.Random, table: str) -> str:
    """Two aggregates of the table by one key."""
    keys = rng.choice([["k"], ["k"], ["k", "j"]])
    listed = ", ".join(keys)
    first = rng.choice([[], [], _some(rng, "")])
    second = rng.choice([first, _some(rng, ""), _some(rng, "")])
    on = " AND ".join(f"x.{key} = y.{key}" for key in keys)
    kind = rng.choice(["JOIN", "JOIN", "JOIN", "LEFT JOIN", "FULL JOIN"])
    left, right = (
        f"(SELECT {listed}, {_aggregate(rng, '')} AS g, {_aggregate(rng, '')} AS h "
        f"FROM {table}{_where(each)} GROUP BY {listed})"
        for each in (first, second)
    )
    if kind == "JOIN" and rng.random() < 0.5:
        return f"SELECT x.k, x.g, y.g AS yg, y.h FROM {left} x, {right} y WHERE {on} AND x.g >= 0"
    return f"SELECT x.k, x.g, y.g AS yg, y.h, y.k AS yk FROM {left} x {kind} {right} y ON {on}"


def _shared(rng: random.Random, table: str) -> str:
    """Several uses of the table by one key."""
    groups = [
        f"(SELECT k, count(DISTINCT {rng.choice('vsj')}) AS c, max(v) AS m "
        f"FROM {table}{_where(_some(rng, ''))} GROUP BY k)"
        for _ in range(2)
    ]
    kind = rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    conditions = _some(rng, "a")
    if rng.random() < 0.5:
        conditions.append("(z.c > 1 OR z.m <> a.v OR z.c IS NULL)")
    return (
        f"SELECT a.k, a.s, y.c, z.m FROM {table} a JOIN {groups[0]} y ON a.k = y.k "
        f"{kind} {groups[1]} z ON y.k = z.k{_where(conditions)}"
    )
