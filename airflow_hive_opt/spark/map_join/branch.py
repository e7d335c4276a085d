"""Runs a statement that changes rows on a branch of an Iceberg table, which then becomes current.

Conditions by a key index are true for one snapshot. Iceberg's own check at the commit would not
notice that another writer adds one of the keys elsewhere in the table. So the statement runs on a
branch that begins at the snapshot. The table goes forward to the branch's end in one commit, and
only if it still has the snapshot. Until then nobody sees what the statement has written.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.documents.best_effort import best_effort
from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.restriction.indexed import filters_of_changes, snapshots_of
from airflow_hive_opt.spark.catalog.lakes.loading import load
from airflow_hive_opt.spark.catalog.lakes.place import Place
from airflow_hive_opt.spark.session.java_classes import java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.documents.descriptor import Descriptor

log = logging.getLogger(__name__)
_MAIN = "main"
_OWN = "hive_opt_"
_LONGEST_RUN = 120
_LEFT_FOR = 24 * 3600 * 1000  # milliseconds
_TRIES = 4
_PAUSE = 0.2  # seconds
_REJECTED = "org.apache.iceberg.exceptions.CommitFailedException"
_OF_ICEBERG = "org.apache.iceberg.exceptions."
_FAILURES = (Py4JError, PySparkException, ConnectionError)


class NotPublished(Exception):
    """The table is as it was: what the statement wrote on its branch is not part of it."""


class Branch:
    """A branch of the table ``table`` that begins at ``snapshot``, the table's current one.

    ``run`` says which run has made it; it becomes a part of the name.
    """

    def __init__(self, session: SparkSession, table: str, snapshot: str, run: str = "") -> None:
        self.name = "_".join((f"{_OWN}{uuid4().hex[:8]}", *_words(run)))
        self.table = table
        self._session = session
        self._start = int(snapshot)
        self._exists = False

    @property
    def full_name(self) -> str:
        """The name by which a statement writes to the branch."""
        return f"{self.table}.branch_{self.name}"

    def create(self) -> None:
        """Makes the branch. Expiring the table's snapshots removes it after a day.

        Also removes the branches of this kind that are so old, which killed runs have left.
        Raises :class:`NotPublished` if the table has another snapshot now, and the errors of the
        catalog.
        """
        table = self._loaded()
        if _current(table) != self._start:
            raise NotPublished(_other_writer(self.table))
        age = int(time.time() * 1000) - int(table.snapshot(self._start).timestampMillis())
        branches = table.manageSnapshots().createBranch(self.name, self._start)
        self._exists = True  # also if the catalog's answer gets lost
        branches.setMaxRefAgeMs(self.name, max(age, 0) + _LEFT_FOR).commit()
        best_effort(partial(_remove_expired, self._session._jvm, table))

    def publish(self) -> None:
        """Makes the branch's end the table's current snapshot, and removes the branch.

        Raises :class:`NotPublished` if the table has another snapshot now, and the catalog's errors
        if it does not say whether it has done it.
        """
        for rest in reversed(range(_TRIES)):
            try:
                table = self._loaded()
            except _FAILURES as error:  # no commit is on its way
                if not rest:
                    raise NotPublished(in_words(error)) from error
                time.sleep(_PAUSE)
                continue
            end = self._end(table)
            try:
                forward = table.manageSnapshots().fastForwardBranch(_MAIN, self.name)
                forward.removeBranch(self.name).commit()
                self._exists = False
                return
            except _FAILURES as error:
                if self._is_published(end, error):
                    return
                if not _is_rejected(error):  # the commit may still come
                    raise
                if not rest:
                    raise NotPublished(in_words(error)) from error
            time.sleep(_PAUSE)

    def remove(self) -> None:
        """Removes the branch, unless it is published; never fails."""
        for rest in reversed(range(_TRIES)):
            if not self._exists:
                return
            try:
                table = self._loaded()
                if table.refs().containsKey(self.name):
                    table.manageSnapshots().removeBranch(self.name).commit()
                self._exists = False
            except _FAILURES as error:
                if not rest:
                    log.warning(
                        "the branch %s of %s is left, until its snapshots expire in a day or "
                        "ALTER TABLE ... DROP BRANCH removes it: %s",
                        self.name,
                        self.table,
                        in_words(error),
                    )
                    return
                time.sleep(_PAUSE)

    def _loaded(self) -> Any:
        table = load(self._session, Place.of(self.table)).table()
        table.refresh()
        return table

    def _end(self, table: Any) -> int:
        """The branch's snapshot, if the table is still where the branch begins.

        Raises :class:`NotPublished`. If somebody removed the branch while the statement ran,
        Iceberg has made it again from the table's snapshot at that time.
        """
        if (branch := table.refs().get(self.name)) is None:
            raise NotPublished(f"the branch {self.name} of {self.table} has been removed")
        end = int(branch.snapshotId())
        if _current(table) != self._start:
            raise NotPublished(_other_writer(self.table))
        if end != self._start and table.snapshot(end).parentId() != self._start:
            raise NotPublished(f"the branch {self.name} of {self.table} begins elsewhere")
        return end

    def _is_published(self, end: int, error: Exception) -> bool:
        """Whether the table has the branch's end, although the catalog says that it failed.

        Raises ``error`` if that can't be found out, and :class:`NotPublished` if another writer has
        changed the table: then it never will have it.
        """
        table = best_effort(self._loaded)
        if table is None:
            raise error
        now = _current(table)
        if now == self._start:
            return False
        util = java_class(self._session._jvm, "org.apache.iceberg.util.SnapshotUtil")
        is_there = now is not None and util.isAncestorOf(table, now, end)
        if end == self._start or not is_there:
            raise NotPublished(_other_writer(self.table)) from error
        log.info("%s has the statement's commit, although its catalog failed", self.table)
        return True


@contextmanager
def branch_for(
    session: SparkSession, descriptor: Descriptor, run: str = ""
) -> Iterator[Branch | str]:
    """The branch of the descriptor's target for the block, which removes it at its end.

    Or why there is none; empty if the descriptor needs none. ``run`` says which run makes it.
    """
    changed = filters_of_changes(descriptor)
    if not changed:
        yield ""
        return
    table = changed[0].scan.table
    branch = Branch(session, table, snapshots_of(descriptor)[table].snapshot, run)
    try:
        try:
            branch.create()
        except (NotPublished, *_FAILURES) as error:
            log.warning("the key index of %s is not used: no branch: %s", table, in_words(error))
            branch.remove()
            yield in_words(error)
        else:
            yield branch
    finally:
        branch.remove()


@contextmanager
def published(branch: Branch, runs: AbstractContextManager[None]) -> Iterator[None]:
    """The block ``runs``, in which a statement runs on the branch, and publishes it at its end.

    Raises :class:`NotPublished` if the statement may run again without the branch.
    """
    with runs:
        try:
            yield
        except (PySparkException, Py4JJavaError) as error:
            if _OF_ICEBERG in str(error):
                raise NotPublished(in_words(error)) from error
            raise
        branch.publish()
    best_effort(partial(_refresh, branch))


def _words(run: str) -> list[str]:
    """The words of a run's path.

    >>> _words("s3://b/hive_opt/shop/manual__1/merge/-1/2.json")
    ['s3', 'b', 'hive', 'opt', 'shop', 'manual', '1', 'merge', '1', '2']
    """
    return re.findall(r"[A-Za-z0-9]+", run.rpartition(".json")[0][-_LONGEST_RUN:])


def _current(table: Any) -> int | None:
    """The table's snapshot; a table that was replaced has none until it is written to."""
    snapshot = table.currentSnapshot()
    return None if snapshot is None else int(snapshot.snapshotId())


def _remove_expired(jvm: Any, table: Any) -> None:
    """Removes the branches that the expiry of snapshots would remove now."""
    now = int(time.time() * 1000)
    refs = table.refs()
    # in one call to the JVM
    names = str(java_class(jvm, "java.lang.String").join("\0", refs.keySet())).split("\0")
    for name in (each for each in names if each.startswith(_OWN)):
        most, snapshot = refs[name].maxRefAgeMs(), table.snapshot(refs[name].snapshotId())
        if most is not None and now - int(snapshot.timestampMillis()) > int(most):
            table.manageSnapshots().removeBranch(name).commit()
            log.info("the branch %s was removed: the run that made it did not end", name)


def _refresh(branch: Branch) -> None:
    branch._session.catalog.refreshTable(branch.table)


def _is_rejected(error: Exception) -> bool:
    java: Any = getattr(error, "java_exception", None)
    return java is not None and str(java.getClass().getName()) == _REJECTED


def _other_writer(table: str) -> str:
    return f"another writer has changed {table} while the statement ran"
