"""Of two submissions of one task instance, only the newest may begin its statement.

A submission first claims the task instance, and then looks whether the one before it has begun. A
driver first writes that it begins, and then looks whether its submission still has the claim. So
at least one of the two sees the other, however late a driver starts. This needs storage in which a
file can be read as soon as it is written.

The claim of a retry also tells its driver since when the submissions before it may have written.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

from airflow_hive_opt.documents.format import Format
from airflow_hive_opt.documents.storage import DescriptorError, NothingThereError

if TYPE_CHECKING:
    from airflow_hive_opt.documents.storage import StoragePath


class Superseded(DescriptorError):
    """A newer submission has the claim, so this one must not run its statement."""


@dataclass(frozen=True)
class Claim:
    """The newest submission: its token, and the name of its attempt's path without a suffix.

    ``cause`` is what a retry has in common with the attempt before it, but a task that somebody has
    cleared has not. ``may_have_written_since`` is when a submission of the same cause has begun of
    which nobody knows whether it has written, in seconds since 1970 by its driver's clock.
    """

    token: str
    attempt: str
    cause: str
    may_have_written_since: Optional[float] = None


@dataclass(frozen=True)
class Begun:
    """The token of a submission whose statement has begun, its ID on its cluster, and when.

    The ID is the driver's on a standalone cluster in cluster mode, and else the application's.
    ``began`` is in seconds since 1970, by the driver's clock.
    """

    token: str
    application_id: str
    began: float


_CLAIM = Format("claim", 2, Claim)
_BEGUN = Format("begun", 2, Begun)


def take(path: StoragePath, token: str, cause: str, since: Optional[float] = None) -> None:
    """Claims the task instance of the attempt at ``path``; raises ``DescriptorError``.

    ``since`` is :attr:`Claim.may_have_written_since`.
    """
    _CLAIM.write(Claim(token, path.stem, cause, since), _claim_path(path))


def newest(path: StoragePath) -> Optional[Claim]:
    """The claim of the newest submission; ``None`` without any. Raises ``DescriptorError``."""
    try:
        return _CLAIM.read(_claim_path(path))
    except NothingThereError:
        return None


def begin(path: StoragePath, token: str, application_id: Optional[str]) -> Optional[float]:
    """Begins the statement of the submission with this token; a job without one is not submitted.

    Returns since when a submission before it may have written. Without any claim it begins too:
    other submissions of jobs take none. Raises :class:`Superseded`, and ``DescriptorError``.
    """
    if not token:
        return None
    _BEGUN.write(Begun(token, application_id or "", time.time()), _begun_path(path))
    if (found := newest(path)) is None:
        return None
    if found.token != token:
        raise Superseded(
            "a newer attempt of this task has been submitted, so this one does not run its "
            "statement"
        )
    return found.may_have_written_since


def begun(path: StoragePath, token: str) -> Optional[Begun]:
    """What the driver of the submission wrote as it began; ``None`` if it has not begun.

    Raises ``DescriptorError``.
    """
    try:
        found = _BEGUN.read(_begun_path(path))
    except NothingThereError:
        return None
    return found if found.token == token else None


def _claim_path(path: StoragePath) -> StoragePath:
    return path.with_name("claim.json")


def _begun_path(path: StoragePath) -> StoragePath:
    return path.with_name(f"{path.stem}.begun.json")
