"""Of two submissions of one task instance, only the newest may begin its statement.

A submission is an application that an attempt submits, or an attempt that runs on the embedded
Spark. Its *driver* is the process with its Spark session.

A submission first claims the task instance, and then looks whether the one before it has begun. A
driver first writes that it begins, and then looks whether its submission still has the claim. So
at least one of the two sees the other, however late a driver starts. This needs storage in which a
file can be read as soon as it is written.

The claim of a retry names the submissions before it, so that its driver can find out since when one
of them may have written.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

from airflow_hive_opt.documents.format import Format, RefusedDocument
from airflow_hive_opt.documents.storage import DescriptorError, NothingThereError

if TYPE_CHECKING:
    from airflow_hive_opt.documents.storage import StoragePath

log = logging.getLogger(__name__)


class Superseded(DescriptorError):
    """A newer submission has the claim, so this one must not begin its statement."""


@dataclass(frozen=True)
class Submission:
    """A submission: the name of its attempt's path without a suffix, and its token.

    Raises ``ValueError`` for a name that is not a number.
    """

    attempt: str
    token: str

    def __post_init__(self) -> None:
        """Checks that the name leads to no other folder."""
        if not self.attempt.isdecimal():
            raise ValueError("attempt must be a number")

    def path_beside(self, path: StoragePath) -> StoragePath:
        """The path of its attempt, beside that of another attempt of the task instance."""
        return path.with_name(f"{self.attempt}.json")


@dataclass(frozen=True)
class Claim:
    """The newest submission, and those before it that did the same work.

    ``cause`` is what a retry has in common with the attempt before it. A task that somebody has
    cleared, or whose statement has changed, has another one.
    """

    newest: Submission
    cause: str
    earlier: tuple[Submission, ...] = ()


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


def take(path: StoragePath, token: str, cause: str) -> tuple[Submission, ...]:
    """Claims the task instance of the attempt at ``path``.

    Returns the submissions before it that did the same work. Raises ``DescriptorError``.
    """
    own = Submission(path.stem, token)
    try:
        before = _CLAIM.read(_claim_path(path))
    except NothingThereError:
        earlier: tuple[Submission, ...] = ()
    except RefusedDocument as error:
        log.warning("%s. If the statement adds rows, look for rows that are there twice", error)
        earlier = ()
    else:
        if before.newest == own:
            return before.earlier
        earlier = _before(own, before) if before.cause == cause else ()
    _CLAIM.write(Claim(own, cause, earlier), _claim_path(path))
    return earlier


def _before(own: Submission, claim: Claim) -> tuple[Submission, ...]:
    """The submissions before ``own``; a run that was deleted and created again has none."""
    found = (*claim.earlier, claim.newest)
    return tuple(each for each in found if int(each.attempt) < int(own.attempt))


def begin(
    path: StoragePath, token: str, application_id: Optional[str], in_steps: bool = False
) -> Optional[float]:
    """Begins the statement of the submission with this token; a job without one has no claim.

    Returns since when a submission before it may have written, or this one, if its driver was
    started again; ``None`` for never. ``in_steps`` says that the statement commits in several
    steps, so that it may have written before any error. Without any claim it begins too: a job
    that is submitted in another way takes none. Raises :class:`Superseded`, and
    ``DescriptorError``.
    """
    if not token:
        return None
    before = begun(path, token)
    own = None if before is None else before.began
    began = time.time() if own is None else own
    _BEGUN.write(Begun(token, application_id or "", began), _begun_path(path))
    try:
        claim = _CLAIM.read(_claim_path(path))
    except NothingThereError:
        return own
    if claim.newest.token != token:
        raise Superseded(
            "a newer attempt of this task has begun, so this one does not run its statement"
        )
    since = [own]
    for each in claim.earlier:
        since.append(_may_have_written_since(each.path_beside(path), each.token, in_steps))
    return min((found for found in since if found is not None), default=None)


def _may_have_written_since(path: StoragePath, token: str, in_steps: bool) -> Optional[float]:
    """When the statement of an earlier submission began; ``None`` if it has not written.

    0 if it has written, or if nobody knows when it began.
    """
    from airflow_hive_opt.documents.job import Status, read_outcome  # late: it loads the parser

    if (found := begun(path, token)) is None:
        return None
    try:
        outcome = read_outcome(path, token)
    except DescriptorError:
        return found.began
    if outcome.status is Status.DONE:
        return 0.0
    return found.began if outcome.may_have_written or in_steps else None


def begun(path: StoragePath, token: str) -> Optional[Begun]:
    """What the driver of the submission wrote as it began; ``None`` if it has not begun.

    One that can't be trusted may be its own: it has no ID, and has begun in 1970. Raises
    ``DescriptorError``.
    """
    try:
        found = _BEGUN.read(_begun_path(path))
    except NothingThereError:
        return None
    except RefusedDocument as error:
        log.warning("%s", error)
        return Begun(token, "", 0.0)
    return found if found.token == token else None


def _claim_path(path: StoragePath) -> StoragePath:
    return path.with_name("claim.json")


def _begun_path(path: StoragePath) -> StoragePath:
    return path.with_name(f"{path.stem}.begun.json")
