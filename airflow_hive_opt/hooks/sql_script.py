"""The statements of one call of a hook, and what has happened to them if one fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from typing import Any

from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
)
from airflow_hive_opt.provider.without_stack import without_stack
from airflow_hive_opt.statement.script import ScriptStatement, split_statements
from airflow_hive_opt.statement.tables import must_run_once

_KINDS = (AirflowFailException, AirflowSkipException, AirflowException)


@dataclass
class SqlScript:
    """The statements that a hook runs one after the other; ``done`` of them have run."""

    statements: Sequence[ScriptStatement]
    done: int = 0

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

    def run(self, statement: Callable[[ScriptStatement], None]) -> None:
        """Runs the next statement; an error says which one it is, and what has run before it."""
        try:
            statement(self.statements[self.done])
        except AirflowException as error:
            raise self._located(error, self.done + 1) from None
        self.done += 1

    def handled(self, handler: Callable[[Any], Any], cursor: Any) -> Any:
        """What the user's handler returns for the statement that has just run."""
        try:
            return handler(cursor)
        except AirflowException as error:
            raise self._located(error, self.done) from None
        except Exception as error:
            name = getattr(handler, "__name__", type(handler).__name__)
            at = extract_tb(error.__traceback__)[-1]
            said = f"{type(error).__name__}: {error} ({Path(at.filename).name}, line {at.lineno})"
            failed = AirflowException(
                f"the statement has run, but the handler {name} fails: {said}"
            )
            raise self._located(failed, self.done) from error

    def _located(self, error: AirflowException, number: int) -> AirflowException:
        """The error with its statement's ``number``.

        It allows no retry if that would repeat what a statement has already changed.
        """
        if type(error) not in _KINDS:
            return error
        message, kind = str(error), type(error)
        if (count := len(self.statements)) > 1:
            before, after = number - 1, count - number
            message = (
                f"statement {number} of {count}: {message} "
                f"({before} before it ran, {after} after it did not)"
            )
        changed = [
            str(at)
            for at, found in enumerate(self.statements[: self.done], 1)
            if must_run_once(found.text)
        ]
        if kind is AirflowException and changed:
            kind = AirflowFailException
            message += f". There is no retry: it would run statement {', '.join(changed)} again"
        return without_stack(kind(message))
