"""A key set with a name: keys that one task has read and later tasks take, if they are the same.

A task takes the keys of a key query only if all on which they depend is the same for its own key
query: ``documents/key_set.py`` says what that is. Everything else costs only the key query: a key
set that is missing, refused or damaged, and one that can't be written.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Protocol

from airflow_hive_opt.documents.descriptor import KeySetUse, now
from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.documents.key_set import (
    KeyQueryState,
    KeySet,
    KeySetCode,
    ListedKeys,
    digest_of,
    path_of,
    read_key_set,
    refusal,
    write_key_set,
)
from airflow_hive_opt.documents.storage import NothingThereError, StoragePath
from airflow_hive_opt.local_task.engine import Keys
from airflow_hive_opt.pruning.decisions import KeySource
from airflow_hive_opt.statement.words import words

log = logging.getLogger(__name__)

_Asked = tuple[str, str]
_USUAL = (KeySetCode.TAKEN, KeySetCode.ABSENT, KeySetCode.NOT_SHARED)
# A text of which Spark may make the current day or time, wherever it becomes a date: 'today UTC'.
_OF_THE_DAY = re.compile(
    r"""['"](?:\\(?:u[0-9a-f]{4}|[0-7]{3}|\w)|[^\w'"`])*(?:now|today|tomorrow|yesterday)""",
    re.IGNORECASE,
)
_NO_TEXT = "\ufffd"
"""What readers make of bytes that are no UTF-8."""


class NotShared(Exception):
    """The keys of a key query can't be in a key set; the message says why."""


class KeyQueries(Protocol):
    """What an engine tells of its key queries; the methods may raise its own errors too."""

    def described(self, source: KeySource, anew: bool) -> KeyQueryState:
        """The source's key query, with its tables and views as they are now.

        With ``anew``, what reads the tables from now on has no older list of their files. Raises
        :class:`NotShared`.
        """

    def listed(self, keys: Keys) -> ListedKeys:
        """Keys of this engine as texts; raises :class:`NotShared`."""

    def taken(self, source: KeySource, keys: ListedKeys) -> Keys:
        """The keys of a key set as keys of this engine, for a source that was described."""


class SharedKeySets:
    """The key set in ``folder``, for one run. ``uses`` says what the run did with it."""

    def __init__(self, folder: StoragePath, queries: KeyQueries) -> None:
        self._folder = folder
        self._queries = queries
        self._described: dict[_Asked, KeyQueryState | None] = {}
        self.uses: list[KeySetUse] = []

    def take(self, source: KeySource) -> Keys | None:
        """The source's keys if the key set has them, else ``None``; looks each query up once."""
        if _asked(source) in self._described:
            return None
        self._described[_asked(source)] = None
        code, why, keys = self._found(source)
        self.uses.append(KeySetUse(source.name, source.sql, code, why))
        text = f"{code.sentence}: {why}" if why else code.sentence
        log.log(
            logging.INFO if code in _USUAL else logging.WARNING,
            *("key set %s, keys of %s: %s, %s", self._folder, source.name, code, text),
        )
        return keys

    def _found(self, source: KeySource) -> tuple[KeySetCode, str, Keys | None]:
        """What the key set has for the source, and more about it."""
        try:
            own = self._queries.described(source, anew=True)
        except NotShared as error:
            return KeySetCode.NOT_SHARED, str(error), None
        except Exception as error:  # noqa: BLE001 - the key query itself says what is wrong
            return KeySetCode.NOT_SHARED, in_words(error), None
        self._described[_asked(source)] = own
        try:
            kept = read_key_set(path_of(self._folder, own))
            if (refused := refusal(kept.query, own)) is not None:
                return *refused, None
            keys = self._queries.taken(source, kept.keys)
            return KeySetCode.TAKEN, f"read at {kept.created}", keys
        except NothingThereError:
            return KeySetCode.ABSENT, "", None
        except Exception as error:  # noqa: BLE001 - the key query can still run
            return KeySetCode.NOT_VALID, in_words(error), None

    def keep(self, source: KeySource, keys: Keys) -> None:
        """Writes keys that the engine has read, after :meth:`take` did not have them.

        It does not if a table has changed meanwhile. A failure is only logged.
        """
        before = self._described.get(_asked(source))
        if before is None:
            return
        try:
            # not anew: the statement then reads the files that the keys come from
            if refusal(before, self._queries.described(source, anew=False)):
                log.info("the keys of %s are not kept: a table changes", source.name)
                return
            listed = self._queries.listed(keys)
            if any(_NO_TEXT in (text or "") for column in listed.values for text in column):
                raise NotShared("a key may have bytes that are no text")
            found = KeySet(before, listed, now())
            write_key_set(found, path_of(self._folder, before))
            log.info("the keys of %s are kept in the key set %s", source.name, self._folder)
        except NotShared as why:
            log.info("the keys of %s are not kept: %s", source.name, why)
        except Exception as error:  # noqa: BLE001 - whatever it is, this run has its keys
            log.warning("the keys of %s can't be kept: %s", source.name, in_words(error))


def used_parameters(sql: str, parameters: Mapping[str, object]) -> dict[str, str]:
    """The parameters that ``sql`` may name, each with the digest of its value and type.

    A quoted name may be anywhere, since a quote may belong to a string or a comment.

    >>> sorted(used_parameters("WHERE day = :day", {"day": "1", "hour": 2, "of day": 3}))
    ['day', 'of day']
    """
    named = words(sql)
    return {
        name: digest_of(type(value).__name__, repr(value))
        for name, value in sorted(parameters.items())
        if name.lower() in named or not re.fullmatch(r"\w+", name)
    }


def check_of_all_days(texts: Iterable[str], parameters: Mapping[str, object]) -> None:
    """Raises :class:`NotShared` if a text in ``texts`` or a value may mean another day later.

    ``texts`` are SQL.

    >>> check_of_all_days(["SELECT p FROM d WHERE name = 'Not today'"], {"day": "2026-01-31"})
    >>> check_of_all_days(["SELECT p FROM d WHERE day = 'today'"], {})
    Traceback (most recent call last):
    airflow_hive_opt.local_task.shared_key_sets.NotShared: 'today may be another day later
    """
    for text in (*texts, *map(repr, parameters.values())):
        if found := _OF_THE_DAY.search(text):
            raise NotShared(f"{found.group()} may be another day later")


def _asked(source: KeySource) -> _Asked:
    return source.sql, source.metadata_sql
