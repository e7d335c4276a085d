"""Random joins of three large tables and two small ones, compared with plain Spark.

``make fuzz-hops N=1000 SEED=7`` tests more of them.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from upath import UPath

from tests.fuzz.findings import SEED, case, count_of, differing, repeat, report
from tests.lakes.iceberg.facts import (
    CLAIMS,
    LARGE,
    RETURNS,
    SALES,
    SPACE,
    create_facts,
    drop_facts,
)
from tests.lakes.random_statements import SMALL
from tests.lakes.runs import rows_of, run, run_apart
from tests.lakes.session import another_session, needs_jvm

pytestmark = needs_jvm
STATEMENTS = count_of("FUZZ_HOPS", 12)
_COLUMNS = {
    SALES: ("ticket", "cart", "item", "v"),
    RETURNS: ("ticket", "item", "v"),
    CLAIMS: ("cart", "v"),
}
_KINDS = ("JOIN", "JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return UPath(tmp_path_factory.mktemp("fuzz") / "indexes")


@pytest.fixture(scope="module")
def session(lake, root):
    session = another_session(lake)
    for name, value in SMALL.items():
        session.conf.set(name, value)
    create_facts(session, root)
    yield session
    drop_facts(session)


def statement(rng: random.Random) -> str:
    """Two to four scans of large tables in a row, some of them narrowed by days or shops."""
    tables = [rng.choice(list(_COLUMNS)) for _ in range(rng.choice([2, 2, 3, 3, 4]))]
    from_, visible, where = "", [], []
    for number, table in enumerate(tables):
        alias = f"f{number}"
        if not from_:
            from_ = f"{table} {alias}"
        else:
            other, of = rng.choice(visible)
            shared = [name for name in _COLUMNS[of] if name in _COLUMNS[table]]
            on = {_equality(rng, other, alias, shared) for _ in range(rng.choice([1, 1, 2]))}
            if rng.random() < 0.2:
                on.add(f"{alias}.v {rng.choice(['<', '>=', '<>'])} {rng.randrange(9)}")
            kind = rng.choice(_KINDS)
            from_ += f" {kind} {table} {alias} ON {' AND '.join(sorted(on))}"
            if kind == "LEFT SEMI JOIN":
                continue
        visible.append((alias, table))
        if rng.random() < 0.5:
            from_ += f" {rng.choice(['JOIN', 'JOIN', 'LEFT JOIN'])} {SPACE}.days d{number} "
            from_ += f"ON {alias}.day = d{number}.day"
            weeks = rng.choice([(3, 3), (4, 5), (0, 3), (2, 12), (50, 60)])
            where.append(f"d{number}.week BETWEEN {weeks[0]} AND {weeks[1]}")
        if rng.random() < 0.3:
            from_ += f" JOIN {SPACE}.shops h{number} ON {alias}.v = h{number}.v"
            where.append(rng.choice([f"h{number}.name = 'shop 1'", f"h{number}.v > 4", "true"]))
    columns = [f"{alias}.{name}" for alias, table in visible for name in _COLUMNS[table]]
    where += [f"{rng.choice(columns)} > {rng.randrange(40)}"] * (rng.random() < 0.3)
    where += [f"{rng.choice(columns)} IS NULL"] * (rng.random() < 0.05)
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    read = f"FROM {from_}{condition}"
    if rng.random() < 0.2:
        return f"SELECT count(*), sum({rng.choice(columns)}) {read}"
    if rng.random() < 0.2:
        names = ", ".join(f"{name} AS c{number}" for number, name in enumerate(columns))
        x = f"WITH x AS (SELECT {names} {read})"
        return f"{x} SELECT a.c0, b.c1, count(*) FROM x a JOIN x b ON a.c0 = b.c0 GROUP BY 1, 2"
    return f"SELECT {', '.join(columns)} {read}"


def _equality(rng: random.Random, one: str, other: str, shared: list[str]) -> str:
    keys = [name for name in shared if name in ("ticket", "cart")] or shared
    name = rng.choice(keys if rng.random() < 0.8 else shared)
    return f"{one}.{name} {'<=>' if rng.random() < 0.05 else '='} {other}.{name}"


def _small(sql: str) -> str:
    """The number of its rows, which must not be millions."""
    return f"SELECT count(*) FROM ({sql}) LIMIT 1"


def test_random_joins_have_plain_sparks_rows(session, tmp_path, root):
    wrong, codes, done, number = [], Counter(), 0, 0
    while done < STATEMENTS:
        number += 1
        rng = random.Random(f"{SEED} {number}")
        sql = statement(rng)
        if rows_of(session, _small(sql))[0][0] > 20_000:
            continue
        done += 1
        plain = rows_of(session, sql)
        both = run_apart if rng.random() < 0.3 else run
        with case(f"statement {number}", statement=sql) as finding:
            found = both(session, sql, tmp_path, settings=LARGE, index_path=str(root))
        uses = [use for use in found.report.descriptor.index_uses if use.hop is not None]
        codes.update(str(use.code) for use in uses)
        if found.rows != plain:
            wrong.append(finding(ran=found.statement, **differing(plain, found.rows)))
    counted = f"{repeat(FUZZ_HOPS=STATEMENTS)}: {dict(codes)}, {len(wrong)} wrong"
    print(counted)
    assert not wrong, report(wrong, FUZZ_HOPS=STATEMENTS)
    assert codes["USED"] >= STATEMENTS * 0.1, counted
