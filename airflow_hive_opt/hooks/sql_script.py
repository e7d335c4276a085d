"""The statements of one call of a hook, and what has happened to them if one fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from traceback import extract_tb
from typing import Any

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
)
from airflow_hive_opt.provider.outcome import masked
from airflow_hive_opt.provider.without_stack import without_stack
from airflow_hive_opt.statement.reruns import RanStatement, must_not_run_again
from airflow_hive_opt.statement.script import ScriptStatement, split_statements

_WITHOUT_RETRY = (AirflowFailException, AirflowSkipException)
_STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)


@dataclass
class SqlScript:
    """The statements that a hook runs one after the other.

    ``begun`` of them have begun, and Spark has run those in ``ran`` to their end.
    """

    statements: Sequence[ScriptStatement]
    begun: int = 0
    ran: list[RanStatement] = field(default_factory=list)

    @classmethod
    def of(cls, sql: str | Sequence[str], is_split: bool) -> SqlScript:
        """The statements of a hook's ``sql``; raises ``AirflowFailException`` if there are none."""
        if isinstance(sql, str):
            whole = [ScriptStatement("", sql)] if sql.strip() else []
            found = split_statements(sql) if is_split else whole
        else:
            found = [ScriptStatement("", each) for each in sql]
        if not found:
            raise without_stack(AirflowFailException("sql has no statement"))
        return cls(found)

    def begin(self) -> ScriptStatement:
        """The next statement."""
        self.begun += 1
        return self.statements[self.begun - 1]

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Any error in the block says which statement it is, and what has run before it.

        It allows no retry if that might change a table once more. This holds for a timeout too.
        """
        try:
            yield
        except BaseException as error:
            located = self._located(error)
            if located is error:
                raise
            cause = error.__cause__ if isinstance(error, AirflowException) else error
            raise located from cause

    def handled(self, handler: Callable[[Any], Any], cursor: Any) -> Any:
        """What the user's handler returns for the statement that has just run."""
        try:
            return handler(cursor)
        except AirflowException:
            raise
        except Exception as error:
            name = getattr(handler, "__name__", type(handler).__name__)
            at = extract_tb(error.__traceback__)[-1]
            said = f"{type(error).__name__}: {error} ({Path(at.filename).name}, line {at.lineno})"
            raise AirflowException(
                f"the statement has run, but the handler {name} fails: {said}"
            ) from error

    def _located(self, error: BaseException) -> BaseException:
        """The error to raise for ``error``: itself if it says all, or must end the process."""
        if not self.begun or isinstance(error, _STOPS):
            return error
        changed = [str(at + 1) for at in must_not_run_again(self.ran)]
        kind = type(error)
        if changed and not isinstance(error, _WITHOUT_RETRY):
            kind = AirflowFailException
        elif not isinstance(error, AirflowException) and isinstance(error, Exception):
            kind = AirflowException
        if kind not in (AirflowException, *_WITHOUT_RETRY):
            return error
        message = str(error)
        if not isinstance(error, AirflowException):
            has_run = "the statement has run, but then " if len(self.ran) == self.begun else ""
            message = f"{has_run}{type(error).__name__}: {masked(in_words(error))}"
        if (count := len(self.statements)) > 1:
            message = (
                f"statement {self.begun} of {count}: {message} "
                f"({self.begun - 1} before it ran, {count - self.begun} after it did not)"
            )
        if kind is AirflowFailException and not isinstance(error, _WITHOUT_RETRY):
            message += f". There is no retry: it would run statement {', '.join(changed)} again"
        return without_stack(kind(message))
