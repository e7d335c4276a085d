"""The planner's error for a statement: what is wrong, and where in the SQL."""

from __future__ import annotations


class PlanError(Exception):
    """A statement that can't be planned because it, or the catalog, is wrong.

    ``code`` is ``PARSE`` or ``SEMANTIC``, or ``INPUT`` for a view without its query in the catalog.
    In a batch it can also be ``INPUT`` for a line that is not a case, and ``INTERNAL`` for an error
    of the planner itself. ``line`` and ``column`` count from 1 and point at the wrong word of the
    SQL; they are ``None`` if no single word is wrong. ``number`` is Hive's number of the error, or
    ``None``.
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


class TooComplex(PlanError):
    """A statement, perhaps a correct one, that is too long to be planned, or nested too deeply."""

    def __init__(self, why: str = "nested too deeply") -> None:
        super().__init__("PARSE", f"the statement is {why} to be planned")


def position(sql: str, offset: int) -> tuple[int, int]:
    r"""Line and column of a character offset; both count from 1, the offset from 0.

    >>> position("SELECT a\nFROM t", 14)
    (2, 6)
    """
    before = sql[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def pointer(sql: str, line: int, column: int) -> str:
    r"""The line of the SQL with a caret below the column, cut to fit a terminal.

    >>> print(pointer("SELECT a\n\tFROM vists", 2, 7))
      FROM vists
           ^
    """
    text = sql.split("\n")[line - 1]
    start = max(0, column - 60, len(text) - len(text.lstrip()))
    shown = "".join(each if each.isprintable() else " " for each in text[start : start + 76])
    return f"  {shown.rstrip()}\n  {' ' * (column - 1 - start)}^"
