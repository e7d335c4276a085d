"""AWS Glue's Data Catalog as a metastore, without Spark."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Optional

from airflow_hive_opt.metastores.glue.connection import (
    AT_ONCE,
    GlueConnection,
    GlueSettings,
    NoSuchEntity,
    RequestRefused,
    together,
)
from airflow_hive_opt.metastores.glue.expression import expressions
from airflow_hive_opt.metastores.glue.tables import glue_partition, hive_partition, hive_table
from airflow_hive_opt.metastores.hive_tables import normal
from airflow_hive_opt.metastores.looked_up import LookedUp
from airflow_hive_opt.metastores.metastore import KeySet, MetastoreError
from airflow_hive_opt.metastores.partitions import DEFAULT_PARTITION, Partition, matching
from airflow_hive_opt.metastores.work import Work
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.zip_strict import zip_strict

log = logging.getLogger(__name__)

A_PAGE = 1_000
"""Partitions in one answer, and keys in one BatchGetPartition, at most."""
# Above these numbers of single partitions and of expressions, all partitions are listed.
_NAMED_UP_TO = 20_000
_MOST_EXPRESSIONS = 100
_LONGEST_VALUE = 1_024  # characters; Glue has no longer one

_Values = tuple[str, ...]


class GlueMetastore(LookedUp):
    """A :class:`~airflow_hive_opt.metastores.metastore.Metastore`; for one thread.

    It calls Glue in up to ten threads of its own. Unqualified names are in ``database``. Each table
    is looked up only once. ``session`` and ``timeout`` are those of
    :class:`~airflow_hive_opt.metastores.glue.connection.GlueConnection`. It is a context manager
    that closes the client at the end.

    Glue has no call for names or for their number: it returns partitions only whole, with their
    locations. So lookups are by keys, and counting stops after the first thousand.
    """

    names_are_cheap = False

    def __init__(
        self,
        settings: GlueSettings | None = None,
        database: str = "default",
        session: Any = None,
        timeout: float = 60,
    ) -> None:
        super().__init__(database)
        self._glue = GlueConnection(settings, session, timeout)
        self._large: set[str] = set()  # tables of more than a page
        self._fetched = 0

    def __enter__(self) -> GlueMetastore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def greet(self, patience: float) -> str:  # noqa: ARG002 - the client has its own time-out
        """See :class:`~airflow_hive_opt.metastores.metastore.Remote`."""
        try:
            self._glue.call("get_database", "Database", Name=self._database)
        except NoSuchEntity:
            return f"no database {self._database}"
        return f"the database {self._database}"

    def close(self) -> None:
        """Closes the client's connections."""
        self._glue.close()

    def default_location(self) -> str | None:
        """See :class:`~airflow_hive_opt.metastores.metastore.Remote`."""
        answer = self._glue.call("get_database", "Database", Name="default")
        location = answer["Database"].get("LocationUri")
        return normal(location) if location else None

    def partition_count(self, table: Table, beyond: int = 1) -> int:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`."""
        found, whole = self._first_page(table)
        if whole or len(found) > beyond:
            return len(found) + (not whole)
        return len(self.partition_names(table))

    def first_names(self, table: Table, at_most: int) -> tuple[int, list[Partition] | None]:
        """See :class:`~airflow_hive_opt.metastores.metastore.Remote`; one call."""
        found, whole = self._first_page(table)
        if not whole:
            log.info("%s has more than %d partitions; Glue does not count them", table.name, A_PAGE)
            return len(found) + 1, None
        return len(found), found if len(found) <= at_most else None

    def partition_names(self, table: Table) -> list[Partition]:
        """All partitions, with location and statistics; in ten segments at once if many."""
        if table.name in self._large:
            return self._in_segments(table, [None])
        return self._found(table, [None])

    def partitions_by_keys(
        self,
        table: Table,
        keys: Sequence[KeySet],
        total: int,  # noqa: ARG002 - it is not known
    ) -> list[Partition]:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`.

        It fetches single partitions if the keys are all their values, else by expressions, else all
        partitions. It matches the returned partitions again.
        """
        if any(not tuples for _, tuples in keys):
            return []
        types = [column.type for column in table.partition_columns]
        found = self._by_exact_values(table, keys)
        if found is None:
            found = self._by_expressions(table, keys)
        if found is None:
            found = self.partition_names(table)
        return list({part.values: part for part in matching(found, types, keys)}.values())

    def partitions_by_names(self, table: Table, partitions: Iterable[Partition]) -> list[Partition]:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`."""
        wanted = dict.fromkeys(part.values for part in partitions)
        raw = self._by_values(table, [_texts(values) for values in wanted])
        found = self.partition_names(table) if raw is None else map(glue_partition, raw)
        return [part for part in found if part.values in wanted]

    def existing(
        self, table: Table, partitions: Iterable[Partition]
    ) -> frozenset[tuple[Optional[str], ...]]:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`."""
        return frozenset(part.values for part in self.partitions_by_names(table, partitions))

    def work(self) -> Work:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`."""
        return Work(metastore_calls=self._glue.calls, partitions_fetched=self._fetched)

    def _told_table(self, database: str, name: str) -> Any | None:
        try:
            answer = self._glue.call("get_table", "Table", DatabaseName=database, Name=name)
        except NoSuchEntity:
            return None
        return hive_table(answer["Table"])

    def _told_tables(self, database: str, names: Sequence[str]) -> Iterable[Any]:
        """The tables, by one call for each, ten at once."""
        return filter(None, together(lambda name: self._told_table(database, name), names))

    def _told_partitions(self, table: Table, partitions: Sequence[Partition]) -> Iterable[Any]:
        found = self._by_values(table, [_texts(part.values) for part in partitions])
        if found is None:
            raise MetastoreError(f"{self._glue.where} does not give the partitions of {table.name}")
        return map(hive_partition, found)

    def _first_page(self, table: Table) -> tuple[list[Partition], bool]:
        """Up to a thousand partitions, and whether these are all."""
        found: list[Partition] = []
        token: str | None = None
        while len(found) < A_PAGE:
            page, token = self._page(table, {}, token)
            found += page
            if token is None:
                break
        self._fetched += len(found)
        if token is not None:
            self._large.add(table.name)
        return found, token is None

    def _by_exact_values(self, table: Table, keys: Sequence[KeySet]) -> list[Partition] | None:
        """The partitions whose values the keys are; ``None`` if a key may have other texts."""
        columns = table.partition_columns
        positions, tuples = keys[0]
        if len(keys) > 1 or sorted(positions) != list(range(len(columns))):
            return None
        if any(column.type != "string" for column in columns):
            return None
        order = [list(positions).index(at) for at in range(len(columns))]
        raw = self._by_values(table, [tuple(str(row[at]) for at in order) for row in tuples])
        return None if raw is None else list(map(glue_partition, raw))

    def _by_values(self, table: Table, wanted: Sequence[_Values]) -> list[dict[str, Any]] | None:
        """The partitions with these values that exist, as Glue gives them.

        ``None`` if they must be found otherwise.
        """
        possible = sorted(
            values for values in wanted if all(0 < len(text) <= _LONGEST_VALUE for text in values)
        )
        if len(possible) > _NAMED_UP_TO:
            return None
        batches = [possible[at : at + A_PAGE] for at in range(0, len(possible), A_PAGE)]
        try:
            answers = together(lambda batch: self._batch(table, batch), batches)
        except RequestRefused as error:
            log.info("%s. The partitions are found by another call", error)
            return None
        found: list[dict[str, Any]] = []
        for answer in answers:
            if answer is None:
                log.info(
                    "AWS Glue leaves keys of %s unprocessed: its partitions are found by another "
                    "call",
                    table.name,
                )
                return None
            found += answer
        self._fetched += len(found)
        return found

    def _batch(self, table: Table, wanted: Sequence[_Values]) -> list[dict[str, Any]] | None:
        """Up to a thousand partitions; ``None`` if Glue does not process all keys."""
        found: list[dict[str, Any]] = []
        while wanted:
            answer = self._glue.call(
                "batch_get_partition",
                "Partitions",
                **self._named(table),
                PartitionsToGet=[{"Values": list(values)} for values in wanted],
            )
            found += answer["Partitions"]
            left = [tuple(one["Values"]) for one in answer.get("UnprocessedKeys") or ()]
            if len(left) >= len(wanted):
                return None
            wanted = left
        return found

    def _by_expressions(self, table: Table, keys: Sequence[KeySet]) -> list[Partition] | None:
        few = sum(len(tuples) for _, tuples in keys) <= _NAMED_UP_TO
        texts = expressions(table.partition_columns, keys) if few else None
        if texts is None or len(texts) > _MOST_EXPRESSIONS:
            log.info(
                "all partitions of %s are listed: its keys need too many expressions", table.name
            )
            return None
        try:
            return self._found(table, texts)
        except RequestRefused as error:
            # a partition named 'x' of an int column is enough for that
            log.info("%s. All partitions are listed instead", error)
            return None

    def _found(self, table: Table, texts: Sequence[str | None]) -> list[Partition]:
        """All partitions for all expressions; answers of several pages are read in segments."""
        first = together(lambda text: self._page(table, _request(text), None), texts)
        self._fetched += sum(len(page) for page, _ in first)
        found = [part for page, token in first if token is None for part in page]
        rest = [text for text, (_, token) in zip_strict(texts, first) if token is not None]
        return found + self._in_segments(table, rest)

    def _in_segments(self, table: Table, texts: Sequence[str | None]) -> list[Partition]:
        """All pages for all expressions, in as many segments as can be asked at once."""
        total = max(1, AT_ONCE // max(1, len(texts)))
        requests = [
            {**_request(text), "Segment": {"SegmentNumber": number, "TotalSegments": total}}
            for text in texts
            for number in range(total)
        ]
        answers = together(lambda request: self._pages(table, request), requests)
        found = [part for answer in answers for part in answer]
        self._fetched += len(found)
        return found

    def _pages(self, table: Table, request: dict[str, Any]) -> list[Partition]:
        found, token = self._page(table, request, None)
        while token is not None:
            before = token
            page, token = self._page(table, request, before)
            if token == before:
                raise MetastoreError(
                    f"{self._glue.where}: GetPartitions of {table.name} repeats a page. Try again"
                )
            found += page
        return found

    def _page(
        self, table: Table, request: dict[str, Any], token: str | None
    ) -> tuple[list[Partition], str | None]:
        """One page, and the token of the next one, if there is one."""
        answer = self._glue.call(
            "get_partitions",
            "Partitions",
            **self._named(table),
            **request,
            **({} if token is None else {"NextToken": token}),
            MaxResults=A_PAGE,
            ExcludeColumnSchema=True,
        )
        return list(map(glue_partition, answer["Partitions"])), answer.get("NextToken") or None

    def _named(self, table: Table) -> dict[str, str]:
        database, _, name = table.name.rpartition(".")
        return {"DatabaseName": database or self._database, "TableName": name}


def _request(text: str | None) -> dict[str, Any]:
    return {} if text is None else {"Expression": text}


def _texts(values: Sequence[str | None]) -> _Values:
    """The values as Glue has them."""
    return tuple(DEFAULT_PARTITION if text is None else text for text in values)
