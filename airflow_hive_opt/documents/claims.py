"""Of two submissions of one task instance, only the newest may begin its statement.

A submission first claims the task instance, and then looks whether the one before it has begun. A
driver first writes that it begins, and then looks whether its submission still has the claim. So
at least one of the two sees the other, however late a driver starts. This needs storage in which a
file can be read as soon as it is written.
"""

from __future__ import annotations

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
    """The token of the newest submission."""

    token: str


@dataclass(frozen=True)
class Begun:
    """The token of a submission whose statement has begun, and its ID on its cluster.

    That is the driver's on a standalone cluster in cluster mode, and else the application's.
    """

    token: str
    application_id: str


_CLAIM = Format("claim", 1, Claim)
_BEGUN = Format("begun", 1, Begun)


def take(path: StoragePath, token: str) -> None:
    """Claims the task instance of the attempt at ``path``; raises ``DescriptorError``."""
    _CLAIM.write(Claim(token), _claim_path(path))


def begin(path: StoragePath, token: str, application_id: Optional[str]) -> None:
    """Begins the statement of the submission with this token; a job without one is not submitted.

    Without any claim it begins too: other submissions of jobs take none. Raises
    :class:`Superseded`, and ``DescriptorError``.
    """
    if not token:
        return
    _BEGUN.write(Begun(token, application_id or ""), _begun_path(path))
    try:
        newest = _CLAIM.read(_claim_path(path)).token
    except NothingThereError:
        return
    if newest != token:
        raise Superseded(
            "a newer attempt of this task has been submitted, so this one does not run its "
            "statement"
        )


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
