"""The definitions of a session's functions, views and variables, by their names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

TEMPORARY_DATABASES = ((), ("session",), ("system", "session"))
"""The qualifiers of a session's temporary views and functions; they may be left out."""
GLOBAL_TEMPORARY = "global_temp"


@dataclass(frozen=True)
class Definition:
    """What identifies a view or function in another session.

    - ``digest`` is the SHA-256 of its definition. It is ``None`` if nothing identifies it: the view
      of a data frame, or a function of Python or Java, of which Spark knows the class only.
    - ``query`` is its query, ``arguments`` the declaration of its arguments. The names in them are
      looked up in ``databases``; an empty one says that the database is not known.
    """

    digest: str | None
    query: str = ""
    arguments: str = ""
    databases: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, lines: Iterable[str], query: str, databases: tuple[str, ...], arguments: str = ""
    ) -> Definition:
        """A definition that ``lines`` describe completely, in any order."""
        text = "\n".join(sorted(lines))
        digest = sha256(text.encode(errors="backslashreplace")).hexdigest()
        return cls(digest, query, arguments, databases)


UNKNOWN = Definition(None)
"""A view or function that nothing identifies."""


class Definitions(Protocol):
    """The views, functions and variables of one session."""

    def temporary_view(self, name: str) -> Definition | None:
        """A temporary view; ``None`` if there is none of this name. Raises Spark's errors."""

    def view(self, name: str) -> Definition | None:
        """A view of the metastore; ``None`` for a table and for a name that does not exist.

        Raises Spark's errors.
        """

    def functions(self, words: Collection[str], database: str) -> Iterator[tuple[str, Definition]]:
        """The functions that ``words`` may name, except Spark's own; raises Spark's errors.

        They are the temporary functions, those of ``database``, and those of every database that
        ``words`` name: which of them Spark takes depends on where a name stands. A function of
        another catalog belongs to that catalog's library and is as fixed as Spark's own.
        """

    def variables(self, words: Collection[str]) -> dict[str, str]:
        """The session's variables among ``words``, with a digest of each one's value."""
