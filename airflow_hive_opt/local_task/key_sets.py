"""The keys of a statement's small tables; runs no key query twice."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.local_task.engine import Engine, Keys, NamesOf
from airflow_hive_opt.local_task.shared_key_sets import SharedKeySets
from airflow_hive_opt.pruning.decisions import KeySource
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.zip_strict import zip_strict

log = logging.getLogger(__name__)

_Asked = tuple[str, str, tuple[tuple[str, Table], ...]]


class KeySets:
    """The keys of one statement.

    ``names`` lists a table's partition names. ``shared`` has the keys of other tasks' statements.
    """

    def __init__(self, engine: Engine, names: NamesOf, shared: SharedKeySets | None = None) -> None:
        self._engine = engine
        self._names = names
        self._shared = shared
        self._found: dict[_Asked, Keys | Reason] = {}

    def collect_together(self, sources: Sequence[KeySource]) -> None:
        """Runs the key queries of several sources at the same time.

        Queries of partition names wait until they are needed: a scan may do without them, and the
        client of the metastore is for one thread.
        """
        distinct = {_asked(source): source for source in sources if not source.skeletons}
        waiting = [source for source in distinct.values() if not self._take(source)]
        if len(waiting) < 2:
            return
        answers = self._engine.collect_together(waiting, self._names)
        for source, found in zip_strict(waiting, answers):
            self._found[_asked(source)] = (
                _unreadable(source, found)
                if isinstance(found, Exception)
                else self._kept(source, found)
            )

    def of(self, source: KeySource) -> Keys | Reason:
        """The source's keys, or why they can't be used; does not query a failed source again."""
        asked = _asked(source)
        if asked not in self._found and not self._take(source):
            try:
                self._found[asked] = self._kept(source, self.collect(source))
            except self._engine.failures as error:
                self._found[asked] = _unreadable(source, error)
        found = self._found[asked]
        if isinstance(found, Reason):
            log.info("the keys of %s are not used: %s, %s", source.name, found, found.sentence)
            return found
        log.info("%s gives %d keys", source.name, found.count)
        return found.of(source)

    def known(self, source: KeySource) -> Keys | None:
        """The source's keys if they have been read."""
        found = self._found.get(_asked(source))
        return None if found is None or isinstance(found, Reason) else found.of(source)

    def _take(self, source: KeySource) -> bool:
        """Takes the source's keys from the key set; returns whether it has them.

        Keys from partition names are never there: partitions come and go.
        """
        if self._shared is None or source.skeletons:
            return False
        keys = self._shared.take(source)
        if keys is not None:
            self._found[_asked(source)] = keys
        return keys is not None

    def _kept(self, source: KeySource, found: Keys | Reason) -> Keys | Reason:
        """``found``, which the key set has from now on."""
        if self._shared is not None and not isinstance(found, Reason):
            self._shared.keep(source, found)
        return found

    def collect(self, source: KeySource) -> Keys | Reason:
        """The source's keys, or why they can't be used; raises the engine's failures."""
        return self._engine.collect(source, self._names)


def failed(what: str, error: Exception) -> Reason:
    """Logs why keys can't be used for pruning; returns the reason code."""
    log.warning("%s: %s", what, in_words(error))
    return Reason.KEY_SOURCE_FAILED


def _asked(source: KeySource) -> _Asked:
    """What identifies a key query: its SQL, and the tables behind its view names."""
    return source.sql, source.metadata_sql, source.skeletons


def _unreadable(source: KeySource, error: Exception) -> Reason:
    return failed(f"the keys of {source.name} can't be read", error)
