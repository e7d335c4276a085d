"""A folder of the run's own below the table for the files that Hadoop's committer moves at the end.

Spark's tasks move their files to ``TABLE/_temporary/ATTEMPT``, and at the end its driver moves
whatever is there into the table. In every job of Spark the number of the attempt is 0. A job that
is killed leaves the files of its finished tasks there. The next job on the table takes them for its
own, so that a retry of the killed job adds their rows twice.

Here every run has a number of its own and removes only the folder of that number. Another job that
ends may still remove all of ``TABLE/_temporary``. A file of the run's own in it shows that.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from airflow_hive_opt.documents.error_text import in_words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_NUMBER = "mapreduce.job.application.attempt.id"
_KEEPS_FOLDERS = "mapreduce.fileoutputcommitter.cleanup.skipped"
_TEMPORARY = "_temporary"  # the committer's name for the folder, and for one in it that it skips
_MARK = "airflow-hive-opt"
_LARGEST = 2**31 - 1
_FAILURES = (Py4JError, PySparkException)  # of calls to Hadoop


class FilesRemoved(Exception):
    """Spark has succeeded, but another job removed files of this run: rows may be missing."""


@contextmanager
def own_job_attempt(session: SparkSession, tables: Sequence[Any]) -> Iterator[None]:
    """Within the block, inserts into ``tables`` commit the files of this run alone.

    ``tables`` are Hadoop paths of the folders that Spark writes to with Hadoop's default committer.
    Raises :class:`FilesRemoved` at the end of the block.
    """
    attempts = _started(session, tables) if tables else []
    if not attempts:
        yield
        return
    try:
        yield
        for attempt in attempts:
            attempt.check()
    finally:
        for attempt in attempts:
            attempt.remove()
        for name in (_NUMBER, _KEEPS_FOLDERS):
            with suppress(*_FAILURES):  # of a session that has ended
                session.conf.unset(name)


def _started(session: SparkSession, tables: Sequence[Any]) -> list[_Attempt]:
    """An attempt below each table.

    None if somebody else has decided how jobs commit, or if a table's folder can't be written, as
    Spark will say.
    """
    conf = session._jsparkSession.sessionState().newHadoopConf()
    if conf.get(_NUMBER) is not None or conf.getBoolean(_KEEPS_FOLDERS, False):
        return []
    number = SystemRandom().randint(1, _LARGEST)
    path = session._jvm.org.apache.hadoop.fs.Path  # type: ignore[union-attr]
    attempts = [_Attempt(path, table, table.getFileSystem(conf), number) for table in tables]
    try:
        for attempt in attempts:
            attempt.mark()
    except _FAILURES as error:
        log.debug("the run has no job attempt of its own: %s", error)
        for attempt in attempts:
            attempt.remove()
        return []
    session.conf.set(_NUMBER, str(number))
    session.conf.set(_KEEPS_FOLDERS, "true")
    return attempts


class _Attempt:
    """The folder of one number below one table."""

    def __init__(self, path: Any, table: Any, files: Any, number: int) -> None:
        self._table = table
        self._files = files
        self._shared = path(table, _TEMPORARY)
        self._own = path(self._shared, str(number))
        self._mark = path(path(self._own, _TEMPORARY), _MARK)

    def mark(self) -> None:
        """Makes the folder, with a file that says whose it is; raises ``Py4JError``."""
        self._files.create(self._mark).close()

    def check(self) -> None:
        """Raises ``FilesRemoved`` if the folder was removed while the run used it."""
        try:
            is_there = self._files.exists(self._mark)
        except _FAILURES as failure:  # the statement has run: a retry would add its rows again
            log.warning("can't check that no other job has removed files: %s", in_words(failure))
            return
        if not is_there:
            raise FilesRemoved(
                f"rows may be missing in {self._table.toString()}: another job that wrote to this "
                f"table removed {self._own.toString()} before this statement ended. Compare the "
                "table with its sources, and run jobs that add to one table one after the other"
            )

    def remove(self) -> None:
        """Removes the folder, and the one around it if nobody else uses that; never fails."""
        try:
            self._files.delete(self._own, True)
            if not self._files.listStatus(self._shared):
                self._files.delete(self._shared, False)
        except _FAILURES as failure:  # another job has removed it, or uses it now
            log.debug("%s is left: %s", self._shared.toString(), failure)
