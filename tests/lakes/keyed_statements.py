"""Random keys, and conditions with them, for tables of which some columns have a key index."""

from __future__ import annotations

import random
from collections.abc import Sequence

KEYS, IDS = ("id", "code", "at"), 60


def keys_of(rng: random.Random, fewest: int) -> str:
    """The rows of a table of keys, at least ``fewest`` of them; a last one may have no key."""
    rows = [
        f"({key}, 'k{key}', date_add(DATE'2020-01-01', {key}), {rng.randint(-1, 3)})"
        for key in rng.sample(range(IDS + 10), rng.randint(fewest, 4))
    ]
    if rng.random() < 0.2:
        rows.append("(NULL, NULL, NULL, 0)")
    return ", ".join(rows)


def condition_on(rng: random.Random, columns: Sequence[str]) -> tuple[str, str]:
    """A condition of a join of ``t`` with keys ``k`` by some columns, and the first of these."""
    chosen = rng.sample(columns, rng.randint(1, len(columns)))
    if rng.random() < 0.15:
        chosen.append(rng.choice(KEYS))
    on = [f"t.{name} = k.{name}" for name in dict.fromkeys(chosen)]
    if rng.random() < 0.3:
        on.append(rng.choice(["t.v > 1", "k.v > 0", "t.day IS NOT NULL", "t.part = 'a'"]))
    return chosen[0], " AND ".join(on)
