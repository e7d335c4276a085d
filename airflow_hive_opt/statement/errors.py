"""The one error a planner raises: what is wrong, and where in the SQL."""

from __future__ import annotations


class PlanError(Exception):
    """A statement that can't be planned because it is wrong.

    ``code`` is ``PARSE`` or ``SEMANTIC``; in a batch also ``INPUT`` for a line that is no case and
    ``INTERNAL`` for a fault of the planner's; ``line`` and ``column`` count from 1 and point at the
    offending word of the SQL, or are ``None`` where no single word is to blame. ``number`` is
    Hive's number for the error, where Hive has one.
    """

    def __init__(
        self,
        code: str,
        message: str,
        line: int | None = None,
        column: int | None = None,
        *,
        number: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.line = line
        self.column = column
        self.number = number

    def __str__(self) -> str:
        if self.line is None:
            return self.message
        return f"line {self.line}, column {self.column}: {self.message}"


def position(sql: str, offset: int) -> tuple[int, int]:
    r"""Line and column, both from 1, of a character offset.

    >>> position("SELECT a\nFROM t", 14)
    (2, 6)
    """
    before = sql[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
