"""Random keys on AWS Glue: the partitions are those that Python finds among all partitions.

moto evaluates the expressions. ``FUZZ_GLUE=2000 FUZZ_SEED=7`` asks for more keys.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from random import Random

import pytest

from airflow_hive_opt.metastores.glue.connection import GlueSettings
from airflow_hive_opt.metastores.glue.metastore import GlueMetastore
from airflow_hive_opt.metastores.metastore import KeySet
from airflow_hive_opt.metastores.partitions import CastText, Partition, matching, typed
from airflow_hive_opt.statement.types import family
from tests.fuzz.findings import SEED, case, count_of, repeat, report
from tests.services.glue_stand_in import REGION, glue_stand_in

pytest.importorskip("moto")  # environments of other versions do not have it

QUESTIONS = count_of("FUZZ_GLUE", 150)
DEFAULT = "__HIVE_DEFAULT_PARTITION__"
TEXTS = (
    "a",
    "A",
    "a ",
    "o'k",
    'd"q',
    "b\\s",
    "x%",
    "_",
    "x/y",
    "é",
    "日本",
    "😀",
    "null",
    "1",
    "01",
)
TEXTS += ("(a)", "a,b", "' OR '1'='1", "t\tx", "2020-01-01", "IN", DEFAULT, "x" * 600, "%27")
TYPES = ("string", "string", "int", "bigint", "smallint", "date", "decimal(5,2)", "timestamp")
# Texts that Python does not read as their type: moto reads the first, and fails on the second.
UNREADABLE = {"date": ("2020-1-5", "soon"), "int": ("8.5", "x"), "bigint": ("9.5", "y")}


def value_of(rng: Random, type_: str) -> str:
    """A random value of the type, as text."""
    if type_ == "string":
        return rng.choice(TEXTS) if rng.random() < 0.7 else f"v{rng.randint(0, 30)}"
    if type_ == "date":
        return str(date(2020, 1, 1) + timedelta(rng.randint(0, 40)))
    if type_ == "decimal(5,2)":
        return f"{rng.randint(-5, 5)}.{rng.choice(('5', '50', '25'))}"
    if type_ == "timestamp":
        return f"2020-01-{rng.randint(1, 9):02} 0{rng.randint(0, 9)}:00:00" + rng.choice(("", ".5"))
    number = rng.randint(-20, 40)
    return f"{number:03}" if number > 0 and rng.random() < 0.1 else str(number)


def key_of(text: str, type_: str) -> object:
    """The key with this text; ``None`` if it is not of the type."""
    return typed(text, type_) if family(type_) else CastText(text, type_)


def table_of(rng: Random) -> tuple[list[tuple[str, str]], list[tuple[str, ...]]]:
    types = [rng.choice(TYPES) for _ in range(rng.choice((1, 1, 2, 2, 3)))]
    keys = [
        (f"c{at}" if rng.random() < 0.9 else ("order", "by", "to")[at], t)
        for at, t in enumerate(types)
    ]
    odd = rng.random()
    rows = set()
    for _ in range(rng.choice((1, 30, 90))):
        row = [value_of(rng, type_) for type_ in types]
        at = rng.randrange(len(row))
        if odd < 0.25 and rng.random() < 0.1:
            row[at] = DEFAULT
        elif 0.25 <= odd < 0.5 and rng.random() < 0.1:
            row[at] = rng.choice(UNREADABLE.get(types[at], (row[at],)))
        rows.add(tuple(row))
    return keys, sorted(rows)


def keys_of(rng: Random, types: list[str], rows: list[tuple[str, ...]]) -> list[KeySet]:
    sets = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        positions = tuple(rng.sample(range(len(types)), rng.randint(1, len(types))))
        number = rng.choice((1, 2, 5, 12)) if rng.random() < 0.9 else rng.choice((80, 250))
        tuples = set()
        for _ in range(number):
            row = rng.choice(rows)
            texts = [
                row[at] if rng.random() < 0.8 else value_of(rng, types[at]) for at in positions
            ]
            values = [key_of(text, types[at]) for text, at in zip(texts, positions, strict=True)]
            if None not in values:
                tuples.add(tuple(values))
        sets.append((positions, frozenset(tuples)))
    return sets


def is_needed(row: tuple[str, ...], types: list[str], keys: list[KeySet]) -> bool:
    """Whether Spark may match the partition, whatever it reads in a value that Python can't read.

    Python keeps a partition with such a value in any case. Glue compares its other values first.
    """
    values = [
        typed("2020-01-05" if text == "2020-1-5" else text, t)
        for text, t in zip(row, types, strict=True)
    ]
    return all(
        any(
            all(
                values[at] in (None, key) and row[at] != DEFAULT
                for at, key in zip(at_, tuple_, strict=True)
            )
            for tuple_ in tuples
        )
        for at_, tuples in keys
    )


@pytest.fixture(scope="module")
def glue():
    with glue_stand_in() as stand_in:
        yield stand_in


def test_random_keys_on_glue_find_the_partitions_that_python_finds(glue, monkeypatch):
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "x")
    rng, seen, wrong = Random(SEED), Counter(), []
    metastore = GlueMetastore(GlueSettings(REGION, glue.endpoint), "fuzz")
    for number in range(QUESTIONS):
        if number % 10 == 0:
            columns, rows = table_of(rng)
            glue.create_table(f"fuzz.t{number}", columns, rows)
            table = metastore.table(f"t{number}")
            types = [type_ for _, type_ in columns]
        keys = keys_of(rng, types, rows)
        before = metastore.work().partitions_fetched
        every = [Partition(tuple(None if v == DEFAULT else v for v in row)) for row in rows]
        allowed = {part.values for part in matching(every, types, keys)}
        needed = {
            part.values
            for part, row in zip(every, rows, strict=True)
            if is_needed(row, types, keys)
        }
        with case(f"question {number}", columns=columns, partitions=rows, keys=keys) as finding:
            found = {part.values for part in metastore.partitions_by_keys(table, keys, 0)}
        if not needed <= found <= allowed:
            wrong.append(finding(missing=needed - found, too_many=found - allowed))
        seen["equal" if found == allowed else "without what Spark can't match"] += 1
        seen["exactly fetched"] += metastore.work().partitions_fetched - before == len(found)
        seen["found"] += len(found)
    counted = f"{repeat(FUZZ_GLUE=QUESTIONS)}: {dict(seen)}, {dict(glue.calls)}"
    print(f"{counted}, longest expression {glue.longest_expression}")
    assert not wrong, report(wrong, FUZZ_GLUE=QUESTIONS)
    assert seen["found"], counted
    assert glue.longest_expression <= 2_048, counted
