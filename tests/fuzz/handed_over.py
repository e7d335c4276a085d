"""Random star joins whose names and tables change between the local task and the map join.

Everything is in the database :data:`DATABASE`, and a few names also in :data:`OTHER`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

DATABASE, OTHER = "midway", "midway_other"
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03", "it''s", "a b")
ONCE = (
    "CREATE TABLE {db}.fact (id INT) PARTITIONED BY (p INT, ds STRING) STORED AS PARQUET",
    "CREATE TABLE {db}.keys (p INT, ds STRING, w INT) STORED AS PARQUET",
)
"""The tables of both databases."""


def rows_of_keys(shift: int) -> str:
    """The query for the small table's rows."""
    days = ", ".join(f"'{day}'" for day in DAYS)
    return (
        f"SELECT CAST((id + {shift}) % 8 AS INT) AS p, array({days})[(id + {shift}) % 5] AS ds, "
        f"CAST(id % 4 AS INT) AS w FROM range(14)"
    )


def function(rng: Random, name: str, inner: str | None = None) -> str:
    """A statement that makes a SQL function of one argument."""
    change = rng.choice((0, 0, 1, 2, 3))
    body = rng.choice((f"x + {change}", f"pmod(x + {change}, 4)", f"IF(x = {change}, 1, 2)"))
    if inner and rng.random() < 0.5:
        body = f"{inner}(x) + {change}"
    if rng.random() < 0.2:
        body = f"x + (SELECT min(w) FROM {DATABASE}.keys WHERE p > {change})"
    return f"CREATE OR REPLACE {{}}FUNCTION {name}(x INT) RETURNS INT RETURN {body}"


def view(rng: Random, name: str, table: str = "keys", calls: tuple[str, ...] = ()) -> str:
    """A statement that makes a view of the small table."""
    called = rng.choice(calls) if calls and rng.random() < 0.5 else ""
    condition = f"{called}(w) {rng.choice(('=', '<', '>'))} {rng.randint(0, 3)}"
    column = rng.choice(("p", "p", "p", "pmod(p + 1, 8) AS p"))
    query = f"SELECT {column}, ds, w FROM {table} WHERE {condition}"
    return f"CREATE OR REPLACE {{}}VIEW {name} AS {query}"


@dataclass(frozen=True)
class Case:
    """A statement, and what happens between its two stages.

    - ``made`` runs before; ``changed`` runs between, in an application of its own.
    - ``there`` and ``here`` are what the applications of local task and map join run for
      themselves.
    - ``undone`` puts the tables back.
    - ``into`` is the text before the query of a statement that writes.
    - ``added`` says that partitions appear, of which the list need not know.
    """

    query: str
    into: str
    made: tuple[str, ...]
    changed: tuple[str, ...]
    there: tuple[str, ...]
    here: tuple[str, ...]
    undone: tuple[str, ...]
    added: bool


def case(rng: Random, writes: bool) -> Case:
    """A statement with at least one change between its stages, three times out of four."""
    persistent, temporary = f"{DATABASE}.one", "two"
    made = [
        function(rng, f"{DATABASE}.inner_one").format(""),
        function(rng, persistent, f"{DATABASE}.inner_one").format(""),
        view(rng, f"{DATABASE}.seen", calls=(persistent,)).format(""),
        view(rng, f"{DATABASE}.above", f"{DATABASE}.seen").format(""),
    ]
    there = [
        function(rng, temporary, persistent).format("TEMPORARY "),
        view(rng, "brief", rng.choice(("keys", "seen")), (temporary, "one")).format("TEMPORARY "),
    ]
    if rng.random() < 0.2:
        there.append(view(rng, "keys", f"{DATABASE}.keys").format("TEMPORARY "))
    here, changed, undone = list(there), [], []
    added = False
    for _ in range(rng.choice((0, 1, 1, 2))):
        kind = rng.choice(tuple(_CHANGES))
        change = _CHANGES[kind](rng)
        changed += change.changed
        here += change.here
        undone += change.undone
        added |= kind == "a partition is added"
    return Case(
        _query(rng), _into(rng) if writes else "", tuple(made), tuple(changed), tuple(there),
        tuple(here), tuple(undone), added,
    )  # fmt: skip


@dataclass(frozen=True)
class _Change:
    changed: tuple[str, ...] = ()
    here: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()


def _of_partition(rng: Random, text: str, undone: str) -> _Change:
    p, day = rng.randrange(8), rng.choice(DAYS)
    spec = f"PARTITION (p = {p}, ds = '{day}')"
    rows = f"SELECT id FROM {DATABASE}.whole WHERE p = {p} AND ds = '{day}'"
    fill = {"fact": f"{DATABASE}.fact", "spec": spec, "rows": rows}
    back = tuple(each.format(**fill) for each in undone.split(";") if each)
    return _Change((text.format(**fill),), (), back)


_REFILL = "INSERT OVERWRITE TABLE {fact} {spec} {rows}"
_CHANGES: dict[str, Callable[[Random], _Change]] = {
    "nothing": lambda rng: _Change(),
    "a function": lambda rng: _Change((function(rng, f"{DATABASE}.one").format(""),)),
    "an inner function": lambda rng: _Change((function(rng, f"{DATABASE}.inner_one").format(""),)),
    "a function is dropped": lambda rng: _Change((f"DROP FUNCTION {DATABASE}.one",)),
    "a view": lambda rng: _Change((view(rng, f"{DATABASE}.seen").format(""),)),
    "a view is dropped": lambda rng: _Change((f"DROP VIEW {DATABASE}.seen",)),
    "a temporary function": lambda rng: _Change((), (function(rng, "two").format("TEMPORARY "),)),
    "a temporary function hides": lambda rng: _Change(
        (), (function(rng, "one").format("TEMPORARY "),)
    ),
    "a temporary view": lambda rng: _Change((), (view(rng, "brief").format("TEMPORARY "),)),
    "a temporary view hides": lambda rng: _Change(
        (), (view(rng, rng.choice(("keys", "seen")), f"{DATABASE}.keys").format("TEMPORARY "),)
    ),
    "the big table is hidden": lambda rng: _Change(
        (), (f"CREATE OR REPLACE TEMPORARY VIEW fact AS SELECT * FROM {OTHER}.fact",)
    ),
    "another database": lambda rng: _Change((), (f"USE {OTHER}",)),
    "the small table moves": lambda rng: _Change(
        (f"ALTER TABLE {DATABASE}.keys SET LOCATION '{{other_keys}}'",),
        (),
        (f"ALTER TABLE {DATABASE}.keys SET LOCATION '{{keys}}'",),
    ),
    "a partition is dropped": lambda rng: _of_partition(
        rng, "ALTER TABLE {fact} DROP IF EXISTS {spec}", _REFILL
    ),
    "a partition is added": lambda rng: _of_partition(
        rng, "INSERT OVERWRITE TABLE {fact} PARTITION (p = 8, ds = '2026-01-01') SELECT 1000",
        "ALTER TABLE {fact} DROP IF EXISTS PARTITION (p = 8, ds = '2026-01-01')",
    ),
    "a partition is rewritten": lambda rng: _of_partition(
        rng, "INSERT OVERWRITE TABLE {fact} {spec} SELECT 2000 + id FROM range(2)", _REFILL
    ),
    "a partition moves": lambda rng: _of_partition(
        rng, "ALTER TABLE {fact} {spec} SET LOCATION '{{elsewhere}}'",
        "ALTER TABLE {fact} DROP IF EXISTS {spec};" + _REFILL,
    ),
}  # fmt: skip


def _into(rng: Random) -> str:
    return rng.choice(
        (
            f"INSERT INTO {DATABASE}.written ",
            f"INSERT OVERWRITE TABLE {DATABASE}.written ",
            f"INSERT OVERWRITE TABLE {DATABASE}.parts PARTITION (part = 'x') ",
        )
    )


def _query(rng: Random) -> str:
    small = rng.choice(
        ("keys", "keys", "seen", "above", "brief", "brief", f"{DATABASE}.keys", f"{DATABASE}.seen")
    )
    call = rng.choice(("one", "two", f"{DATABASE}.one", "", "session.two"))
    value = f"{call}(k.w)" if call else "k.w"
    join = rng.choice(("f.p = k.p", "f.ds = k.ds", "f.p = k.p AND f.ds = k.ds", "f.p < k.p - 4"))
    conditions = [join, f"{value} {rng.choice(('=', '>', '<>'))} {rng.randint(0, 3)}"]
    if rng.random() < 0.2:
        inner = rng.choice(("one", "two"))
        conditions[0] = "f.p = k.q"
        small = f"(SELECT {inner}(p) AS q, ds, w FROM {small})"
    condition = " AND ".join(conditions)
    fact = rng.choice(("fact", "fact", f"{DATABASE}.fact"))
    shape = rng.choice(
        (
            f"{fact} f JOIN {small} k ON {condition}",
            f"{small} k JOIN {fact} f ON {condition}",
            f"{fact} f LEFT SEMI JOIN {small} k ON {condition}",
            f"{fact} f WHERE EXISTS (SELECT 1 FROM {small} k WHERE {condition})",
            f"{small} k LEFT JOIN {fact} f ON {condition}",
        )
    )
    return f"SELECT f.id FROM {shape}"
