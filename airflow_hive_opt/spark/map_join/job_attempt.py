"""A folder of the run's own below the table for the files that Hadoop's committer moves at the end.

Spark's tasks move their files to ``TABLE/_temporary/ATTEMPT``, and at the end its driver moves
whatever is there into the table. In every job of Spark the number of the attempt is 0. A job that
is killed leaves the files of its finished tasks there. The next job on the table takes them for its
own, so that a retry of the killed job adds their rows twice.

Here every run has a number of its own and removes only the folder of that number. Another job that
ends may still remove all of ``TABLE/_temporary``. A file of the run's own in it shows that. If
other jobs have used ``TABLE/_temporary`` meanwhile, files may be in nested folders. They are moved.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.spark.map_join.nested_folders import move_out, remove_if_empty

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_NUMBER = "mapreduce.job.application.attempt.id"
_KEEPS_FOLDERS = "mapreduce.fileoutputcommitter.cleanup.skipped"
_TEMPORARY = "_temporary"  # the committer's name for the folder, and for one in it that it skips
_MARK = "airflow-hive-opt"
_LARGEST = 2**31 - 1
_TRIES = 3  # to make a folder that other jobs remove
_REFUSE_TO_NEST = ("s3a", "s3", "s3n")  # and their folders always seem to have just changed
_FAILURES = (Py4JError, PySparkException)  # of calls to Hadoop


@dataclass(frozen=True)
class InsertedTable:
    """A table to which Spark adds files by Hadoop's default committer.

    ``path`` is the Hadoop path of its folder, which has ``levels`` of partition folders.
    """

    path: Any
    levels: int


class RowsMayBeMissing(Exception):
    """Spark has succeeded, but another job at the same time has removed or misplaced files."""


def own_number() -> dict[str, str]:
    """Settings of a session whose jobs have a number of their own, and leave its folder."""
    return {_NUMBER: str(SystemRandom().randint(1, _LARGEST)), _KEEPS_FOLDERS: "true"}


@contextmanager
def own_job_attempt(session: SparkSession, tables: Sequence[InsertedTable]) -> Iterator[None]:
    """Within the block, inserts into ``tables`` commit the files of this run alone.

    Raises :class:`RowsMayBeMissing` at the end of the block.
    """
    attempts = _started(session, tables) if tables else []
    if not attempts:
        yield
        return
    try:
        yield
        if problems := [found for attempt in attempts if (found := attempt.problem())]:
            raise RowsMayBeMissing("; ".join(problems))
    finally:
        for attempt in attempts:
            attempt.remove()
        for name in (_NUMBER, _KEEPS_FOLDERS):
            with suppress(*_FAILURES):  # of a session that has ended
                session.conf.unset(name)


def _started(session: SparkSession, tables: Sequence[InsertedTable]) -> list[_Attempt]:
    """An attempt below each table.

    None if somebody else has decided how jobs commit, or if a table's folder can't be written, as
    Spark will say.
    """
    conf = session._jsparkSession.sessionState().newHadoopConf()
    if conf.get(_NUMBER) is not None or conf.getBoolean(_KEEPS_FOLDERS, False):
        return []
    own = own_number()
    number = int(own[_NUMBER])
    attempts = [_Attempt(session, each, each.path.getFileSystem(conf), number) for each in tables]
    try:
        for attempt in attempts:
            attempt.mark()
    except _FAILURES as error:
        log.debug("the run has no job attempt of its own: %s", error)
        for attempt in attempts:
            attempt.remove()
        return []
    for name, value in own.items():
        session.conf.set(name, value)
    return attempts


class _Attempt:
    """The folder of one number below one table."""

    def __init__(self, session: SparkSession, to: InsertedTable, files: Any, number: int) -> None:
        path = session._jvm.org.apache.hadoop.fs.Path  # type: ignore[union-attr]
        self._session = session
        self._table, self._levels = to.path, to.levels
        self._files = files
        self._shared = path(to.path, _TEMPORARY)
        self._own = path(self._shared, str(number))
        self._mark = path(path(self._own, _TEMPORARY), _MARK)
        self._may_nest = files.getUri().getScheme() not in _REFUSE_TO_NEST

    def mark(self) -> None:
        """Makes the folder, with a file that says whose it is; raises ``Py4JError``."""
        for rest in reversed(range(_TRIES)):
            try:
                self._files.create(self._mark).close()
                break
            except Py4JError:
                if not rest:
                    raise
        if self._may_nest:
            self._start = self._files.getFileStatus(self._mark).getModificationTime()
            self._before = self._users()

    def problem(self) -> str | None:
        """What is wrong if the folder was removed, or files are where no reader finds them.

        A store that fails now fails nothing: the statement has run, and a retry would add its rows
        again.
        """
        place = self._table.toString()
        try:
            if not self._files.exists(self._mark):
                return (
                    f"rows may be missing in {place}: another job that wrote to this table removed "
                    f"{self._own.toString()} before this statement ended. Compare the table with "
                    "its sources, and run jobs that add to one table one after the other"
                )
            if left := self._nested_files():
                return (
                    f"rows are missing in {place}: two jobs made the same partition's folder at "
                    f"once, and files such as {left[0]} are one folder too deep. Move them up"
                )
        except _FAILURES as failure:
            log.warning("can't check what other jobs did to the files: %s", in_words(failure))
        return None

    def _nested_files(self) -> list[str]:
        if not self._may_nest or self._was_alone():
            return []
        left = move_out(
            self._session._jvm, self._files, self._table, self._levels, self._shared, self._start
        )
        self._session.catalog.refreshByPath(self._table.toString())
        return left

    def _was_alone(self) -> bool:
        return self._before[0] == [self._own.getName()] and self._before == self._users()

    def _users(self) -> tuple[list[str], int]:
        """The names of the jobs that use the shared folder, and when one last began or ended."""
        changed = self._files.getFileStatus(self._shared).getModificationTime()
        return [each.getPath().getName() for each in self._files.listStatus(self._shared)], changed

    def remove(self) -> None:
        """Removes the folder, and the one around it if nobody else uses that; never fails."""
        try:
            self._files.delete(self._own, True)
            if not self._files.listStatus(self._shared):
                remove_if_empty(self._session._jvm, self._files, self._shared)
        except _FAILURES as failure:  # another job has removed it, or uses it now
            log.debug("%s is left: %s", self._shared.toString(), failure)
