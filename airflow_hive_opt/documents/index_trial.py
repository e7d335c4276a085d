"""What a task knows of the times of its own runs, by which its next run decides how it goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Optional

from airflow_hive_opt.statement.text_enum import StrEnum


class TrialArm(StrEnum):
    """How a run goes: with key indexes, without them, or as the statement is, without pruning.

    The values are the names of :class:`IndexTrial`'s times.
    """

    USED = "used"
    LEFT_OUT = "left_out"
    UNTOUCHED = "untouched"


@dataclass(frozen=True)
class IndexTrial:
    """The seconds of a task's last runs by their arm, and what this run tries.

    - ``statement`` is the :func:`~airflow_hive_opt.statement.template.template_digest` of the
      statement that these runs had.
    - ``used``, ``left_out`` and ``untouched`` are the times of the arms; ``None`` if not known.
    - ``may_be_untouched`` says that a run may leave the statement as it is.
    - ``skipped_keys`` and ``skipped_indexes`` are the job's of a run without indexes.
    - ``tries`` is the arm that this run tries, if it compares. ``tries_far_slower`` says that it
      does so even if that arm took far longer than another one.
    - ``counts`` says that this run's time can be compared. ``is_retry`` says that an attempt of
      this run has failed.
    """

    statement: str = ""
    used: Optional[float] = None
    left_out: Optional[float] = None
    untouched: Optional[float] = None
    may_be_untouched: bool = False
    skipped_keys: Mapping[str, int] = field(default_factory=dict)
    skipped_indexes: Mapping[str, int] = field(default_factory=dict)
    tries: Optional[TrialArm] = None
    tries_far_slower: bool = False
    counts: bool = True
    is_retry: bool = False

    @property
    def seconds(self) -> dict[TrialArm, float]:
        """The times that are known."""
        times = {arm: getattr(self, arm.value) for arm in TrialArm}
        return {arm: took for arm, took in times.items() if took is not None}

    def with_seconds(self, arm: TrialArm, seconds: float) -> IndexTrial:
        """With the time of a run that went this way."""
        changed: dict[str, Any] = {arm.value: seconds}
        return replace(self, **changed)
