"""Which cases of a test with many run in ``make test``; ``make test-slow`` runs the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def slow_but(cases: Iterable[Any], *kept: Any) -> list[Any]:
    """The cases, all ``slow`` but those in ``kept``: at least one for each thing that they show.

    Raises ``ValueError`` if one of ``kept`` is no case.
    """
    found, left = [], list(kept)
    for case in cases:
        if case in left:
            left.remove(case)
            found.append(case)
        elif hasattr(case, "marks"):  # of pytest.param
            marks = (*case.marks, pytest.mark.slow)
            found.append(pytest.param(*case.values, marks=marks, id=case.id))
        else:
            values = case if isinstance(case, tuple) else (case,)
            found.append(pytest.param(*values, marks=pytest.mark.slow))
    if left:
        raise ValueError(f"no such case: {left}")
    return found
