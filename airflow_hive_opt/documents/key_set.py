"""The keys of one key query, kept under a name for later tasks that need the same keys.

They are a document as in :mod:`~airflow_hive_opt.documents.format`. It says on what the keys
depend, so that a task takes them only if all of this is the same for its own key query.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from airflow_hive_opt.documents.binding import Binding, differences
from airflow_hive_opt.documents.format import Format
from airflow_hive_opt.documents.storage import StoragePath
from airflow_hive_opt.metastores.partitions import Value, typed
from airflow_hive_opt.statement.catalog import Column
from airflow_hive_opt.statement.text_enum import StrEnum
from airflow_hive_opt.statement.types import family
from airflow_hive_opt.statement.zip_strict import zip_strict

COLUMNS = "columns"
"""The fact of a table that has its columns and their types."""
HADOOP = "spark.hadoop.*"
# Settings that may change the values in files, beside those of all bindings.
_OF_FILES = re.compile(r"spark\.sql\.(orc|parquet)\..+")
_CREDENTIAL = re.compile(r"key|secret|token|password|credential", re.IGNORECASE)
SETTLED = 5
"""Seconds. A file that changed later may change again with the same size and time."""


class KeySetCode(StrEnum):
    """What a task did with the key set of one key query; :attr:`sentence` explains it."""

    TAKEN = "TAKEN"
    ABSENT = "ABSENT"
    NOT_SHARED = "NOT_SHARED"
    NOT_VALID = "NOT_VALID"
    OTHER_TABLES = "OTHER_TABLES"
    OTHER_SESSION = "OTHER_SESSION"
    OTHER_COLUMNS = "OTHER_COLUMNS"
    TABLES_CHANGED = "TABLES_CHANGED"

    @property
    def sentence(self) -> str:
        """The meaning of the code, for logs."""
        return _SENTENCES[self]


_SENTENCES = {
    KeySetCode.TAKEN: "the keys come from the key set, and the key query did not run",
    KeySetCode.ABSENT: "the key set did not have the keys of this key query",
    KeySetCode.NOT_SHARED: (
        "nothing tells whether the key query would return the same keys in another task, so its "
        "keys are not in a key set"
    ),
    KeySetCode.NOT_VALID: (
        "the file of the keys is damaged, or belongs to another key query or version"
    ),
    KeySetCode.OTHER_TABLES: "the key set has the keys of other tables or views",
    KeySetCode.OTHER_SESSION: (
        "the task that made the key set reads the key query differently, or with other limits"
    ),
    KeySetCode.OTHER_COLUMNS: "a small table has other columns or types than the key set's",
    KeySetCode.TABLES_CHANGED: (
        "a small table has other files, other partitions or another snapshot than the key set's"
    ),
}


@dataclass(frozen=True)
class KeyQueryState:
    """A key query, and all on which its keys depend.

    - ``metadata_sql`` is the query that may have read a table's own metadata in place of ``sql``;
      empty for none.
    - ``parameters`` are those that ``sql`` may name, with digests of their values and types.
    - ``limits`` are ``max_keys`` and ``max_key_bytes``.
    - ``reader`` is what reads the keys, with its version.
    - ``binding`` says how the session reads ``sql``.
    - ``tables`` has the facts of each table by which a change shows: its columns, and its snapshot
      or digests of its files, partitions and storage.
    """

    sql: str
    metadata_sql: str
    parameters: Mapping[str, str]
    limits: tuple[int, int]
    reader: str
    binding: Binding
    tables: Mapping[str, Mapping[str, str]]

    @property
    def file_name(self) -> str:
        """The name of the file of its keys: the same whatever the tables and the session are."""
        parts = [*self._asked, sorted(self.parameters.items()), self.binding.reader]
        return f"{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]}.json"

    @property
    def _asked(self) -> tuple[str, str]:
        return self.sql, self.metadata_sql

    def is_of(self, other: KeyQueryState) -> bool:
        """Whether both are the same text with the same parameters."""
        return (self._asked, self.parameters) == (other._asked, other.parameters)


@dataclass(frozen=True)
class ListedKeys:
    """Distinct keys: texts of the column types, a list for each column.

    ``numbers`` has the number of rows with each key. ``exact`` is false if there may be keys that
    the tables do not have. ``calls`` are Spark's functions that a worker has evaluated.
    """

    types: tuple[str, ...]
    values: tuple[tuple[Optional[str], ...], ...]
    numbers: tuple[int, ...]
    exact: bool
    calls: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        types: Sequence[str],
        rows: Iterable[Sequence[Value | None]],
        numbers: Iterable[int],
        exact: bool,
        calls: Iterable[str] = (),
    ) -> ListedKeys:
        """The given rows, each with its number; the types are those of :func:`family`."""
        columns = tuple(zip(*rows)) or ((),) * len(types)
        texts = (tuple(None if v is None else str(v) for v in column) for column in columns)
        return cls(tuple(types), tuple(texts), tuple(numbers), exact, tuple(calls))

    @property
    def rows(self) -> list[tuple[Value | None, ...]]:
        """The keys as values; raises ``ValueError`` for a text that is no value of its type."""
        columns = (list(_values(*each)) for each in zip_strict(self.values, self.types))
        return list(zip(*columns))


@dataclass(frozen=True)
class KeySet:
    """The keys of one key query. ``created`` is as in a descriptor."""

    query: KeyQueryState
    keys: ListedKeys
    created: str


def refusal(kept: KeyQueryState, own: KeyQueryState) -> tuple[KeySetCode, str] | None:
    """Why the keys of ``kept`` are not those of ``own``: a code and all differences, or ``None``.

    >>> bindings = (Binding("c", database, None) for database in ("dw", "test"))
    >>> kept, own = (KeyQueryState("SELECT 1", "", {}, (1, 1), "Spark", b, {}) for b in bindings)
    >>> refusal(kept, own)[1]
    'the current database was dw in the key set and is test in this task'
    """
    if not kept.is_of(own):
        return KeySetCode.NOT_VALID, "it has the keys of another key query"
    session = list(differences(kept.binding, own.binding, "the key set", "this task"))
    if other := kept.binding.tables.keys() ^ own.binding.tables.keys():
        session.append(f"only one of them reads {', '.join(sorted(other))}")
    if kept.reader != own.reader:
        session.append(f"the keys were read by {kept.reader} and not by {own.reader}")
    if kept.limits != own.limits:
        session.append(f"max_keys and max_key_bytes were {_pair(kept)} and are {_pair(own)}")
    changed = list(_changes(kept.tables, own.tables))
    if not session and not changed:
        return None
    code = KeySetCode.TABLES_CHANGED
    if kept.binding.tables != own.binding.tables or kept.tables.keys() != own.tables.keys():
        code = KeySetCode.OTHER_TABLES
    elif session:
        code = KeySetCode.OTHER_SESSION
    elif any(fact == COLUMNS for fact, _ in changed):
        code = KeySetCode.OTHER_COLUMNS
    return code, "; ".join([*session, *(text for _, text in changed)])


def _pair(query: KeyQueryState) -> str:
    return " and ".join(f"{limit:,}" for limit in query.limits)


def _changes(
    kept: Mapping[str, Mapping[str, str]], own: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[str, str]]:
    """Pairs of a fact that differs and a clause of text about it."""
    for name in sorted({*kept, *own}):
        before, now = kept.get(name), own.get(name)
        if before is None or now is None:
            yield "", f"the key set {'has' if now is None else 'does not have'} keys of {name}"
            continue
        for fact in sorted({*before, *now}):
            if before.get(fact) != now.get(fact):
                yield fact, f"the {fact} of {name} {_shown(before.get(fact), now.get(fact))}"


def _shown(before: str | None, now: str | None) -> str:
    if before is None or now is None or _is_digest(before):
        return "changed since the key set was made"
    return f"changed from {before} to {now}"


def _is_digest(text: str) -> bool:
    return len(text) == hashlib.sha256().digest_size * 2 and not text.strip("0123456789abcdef")


def digest_of(*parts: object) -> str:
    """SHA-256 of parts that JSON can represent, in hexadecimal."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def columns_fact(columns: Iterable[Column]) -> dict[str, str]:
    """The fact of a table that has its columns and their types, in their order."""
    return {COLUMNS: ", ".join(f"{column.name} {column.type}" for column in columns)}


def settings_of_files(settings: Mapping[str, str]) -> dict[str, str]:
    """The explicit settings by which files are read.

    :data:`HADOOP` stands for a digest of all settings that reach Hadoop, without credentials.

    >>> sorted(settings_of_files({"spark.sql.orc.impl": "hive", "spark.app.name": "a"}))
    ['spark.hadoop.*', 'spark.sql.orc.impl']
    >>> delimiter = settings_of_files({"textinputformat.record.delimiter": "|"})
    >>> settings_of_files({}) == settings_of_files({"spark.hadoop.fs.s3a.access.key": "k"})
    True
    >>> settings_of_files({}) == delimiter
    False
    """
    own = {name: value for name, value in settings.items() if _OF_FILES.fullmatch(name)}
    hadoop = [
        (name, value)
        for name, value in sorted(settings.items())
        if (name.startswith("spark.hadoop.") or not name.startswith("spark."))
        and not _CREDENTIAL.search(name)
    ]
    return {**own, HADOOP: digest_of(hadoop)}


def has_settled(changed: float) -> bool:
    """Whether a file's last change, in seconds since 1970, is so old that a later one will show."""
    return changed <= time.time() - SETTLED


def _values(texts: Sequence[str | None], type_: str) -> Iterator[Value | None]:
    for text in texts:
        value = None if text is None else text if type_ == "string" else typed(text, type_)
        if value is None and text is not None:
            raise ValueError(f"a key is no {type_}: {text[:50]!a}")
        yield value


def _check(found: KeySet) -> None:
    """Raises ``ValueError`` if the document's fields contradict each other."""
    keys = found.keys
    if not keys.types or None in map(family, keys.types):
        raise ValueError(f"keys have the types {', '.join(keys.types)}")
    if len(keys.values) != len(keys.types):
        raise ValueError("there is not one list of values for each type")
    if {len(column) for column in keys.values} != {len(keys.numbers)}:
        raise ValueError("there is not one value and one number for each key")
    if any(number < 1 for number in keys.numbers):
        raise ValueError("a key has no row")
    if len(set(keys.rows)) < len(keys.numbers):
        raise ValueError("a key is there twice")


_FORMAT = Format("key set", 1, KeySet, _check)
read_key_set, write_key_set = _FORMAT.read, _FORMAT.write


def path_of(folder: StoragePath, query: KeyQueryState) -> StoragePath:
    """The path of the keys of a key query in the folder of a key set."""
    return folder / query.file_name
