"""Why the worker leaves a question to Spark."""

from __future__ import annotations


class Unanswered(Exception):
    """The worker can't answer as Spark would; the message says why."""


class NotUnderstood(Unanswered):
    """A ``part`` of a statement, or a table, that the worker does not support; a noun.

    The smallest condition around it that may be left out is left out. If there is none, the
    statement is unanswered.
    """

    def __init__(self, part: str) -> None:
        super().__init__(f"the worker does not support {part}")
        self.part = part
