"""What a failing run of random cases shows, so that it can be repeated."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

SEED = int(os.environ.get("FUZZ_SEED", "1"))

Finding = Callable[..., str]
"""Makes a text of a case and of what was found out about it, by keyword."""


def count_of(name: str, default: int) -> int:
    """How many cases an environment variable asks for."""
    return int(os.environ.get(name, default))


def repeat(**counts: int) -> str:
    """The variables with which the same cases are made again."""
    return " ".join(f"{name}={value}" for name, value in {"FUZZ_SEED": SEED, **counts}.items())


@contextmanager
def case(title: str, **parts: object) -> Iterator[Finding]:
    """One case, for the block: makes findings of it, and becomes a note of an error."""

    def finding(**found: object) -> str:
        return "\n".join([title, *(f"  {name}: {it}" for name, it in {**parts, **found}.items())])

    try:
        yield finding
    except BaseException as error:
        notes = getattr(error, "__notes__", [])
        error.__notes__ = [*notes, f"{repeat()}, {finding()}"]  # add_note is Python 3.11's
        raise


def report(findings: Sequence[str], **counts: int) -> str:
    """All findings, and how to make them again."""
    return "\n\n".join([f"{len(findings)} cases of {repeat(**counts)} differ", *findings])


def differing(plain: object, ours: object) -> dict[str, object]:
    """Both answers; of lists of rows, what only one of them has. A text is an error."""
    if not (isinstance(plain, list) and isinstance(ours, list)):
        return {"plain": plain, "ours": ours}
    theirs, own = Counter(map(repr, plain)), Counter(map(repr, ours))
    return {
        "plain": f"{len(plain)} rows, only here {list((theirs - own).elements())}",
        "ours": f"{len(ours)} rows, only here {list((own - theirs).elements())}",
    }
