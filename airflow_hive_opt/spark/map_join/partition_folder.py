"""Replaces the folder of one partition by another, complete folder."""

from __future__ import annotations

import logging
from contextlib import suppress
from random import uniform
from time import sleep
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.documents.error_text import in_words

log = logging.getLogger(__name__)

_PREFIX = ".hive-opt-"  # Spark and Hive ignore folders whose names begin with a dot
_TRIES = 8
_PAUSE = 0.05  # seconds at most before the second try; twice as many before each further one
# Here a move is one step. In other file systems it copies, and old files are deleted, not moved.
_MOVES = frozenset({"file", "hdfs", "viewfs"})


class PartitionFolder:
    """The folder ``fragment``, such as ``a=x/b=1``, below ``table``, and a staging folder for it.

    ``conf`` is a Hadoop configuration and ``table`` a Hadoop path.
    """

    def __init__(self, jvm: Any, conf: Any, table: Any, fragment: str) -> None:
        self._jvm = jvm
        self._conf = conf
        self._path = jvm.org.apache.hadoop.fs.Path
        self._files = table.getFileSystem(conf)
        self._table = table
        self._fragment = fragment
        self._place = self._path(table, fragment)
        own = uuid4().hex
        self.staging = self._path(table, f"{_PREFIX}staging-{own}")
        self._aside = self._path(table, f"{_PREFIX}old-{own}")
        self._has_only_rows = False  # whether the staging folder has the partition's only rows

    def remove_own(self) -> None:
        """Removes the staging folder and the old folder; never fails.

        Keeps the staging folder if an object store has deleted the partition but not moved all new
        rows to it.
        """
        for folder in (self._aside,) if self._has_only_rows else (self.staging, self._aside):
            try:
                self._files.delete(folder, True)
            except Py4JJavaError as failure:  # the rows are written, so the run must not fail
                log.warning("%s could not be deleted: %s", folder.toString(), failure)

    def is_as_named(self) -> bool:
        """Whether the staging folder holds only the partition's folder, or nothing."""
        staged = self.staging
        for part in self._fragment.split("/"):
            names = [
                status.getPath().getName()
                for status in self._files.listStatus(staged)
                if status.isDirectory() and status.getPath().getName()[0] not in "._"
            ]
            if not names:
                return True
            if names != [part]:
                return False
            staged = self._path(staged, part)
        return True

    def replace(self, written: int) -> None:
        """Moves the staged folder to the partition's place; without one, deletes the old folder.

        ``written`` is how many files Spark has written, 0 if that is not known. If a move fails,
        restores the old folder, except in an object store, where it is already deleted. Raises
        ``Py4JJavaError``, or ``PySparkException`` if the storage does not list all files, before
        anything has changed, and if an object store can't move them.
        """
        staged = self._path(self.staging, self._fragment)
        files = self._files_in(staged)
        if (listed := len(files or ())) < written:
            raise PySparkException(
                f"{self._place.toString()} is as before: the storage lists only {listed} of the "
                f"{written} files that Spark has written. Run the statement again"
            )
        if files is None:
            self._files.delete(self._place, True)
            return
        self._files.mkdirs(self._place.getParent())
        for number in range(1, _TRIES + 1):
            try:
                self._take_away()
                self._move(staged, self._place)
                return
            except Py4JJavaError:  # a parallel run may have put its partition there
                self._put_back()
                if number == _TRIES:
                    raise
                # without a random pause several runs may undo one another's moves again and again
                sleep(uniform(0, _PAUSE * 2 ** (number - 1)))  # noqa: S311

    def _files_in(self, folder: Any) -> list[Any] | None:
        """The files with rows directly in the folder; ``None`` if there is no folder."""
        if not self._files.exists(folder):
            return None
        found = self._files.listStatus(folder)
        return [file for file in found if file.getPath().getName()[0] not in "._"]

    def _take_away(self) -> None:
        if not self._files.exists(self._place):
            return
        if self._files.getScheme() in _MOVES:
            self._files.delete(self._aside, True)
            self._move(self._place, self._aside)
        else:
            self._files.delete(self._place, True)

    def _put_back(self) -> None:
        if self._files.exists(self._aside) and not self._files.exists(self._place):
            with suppress(Py4JJavaError):  # a parallel run has put its partition there
                self._move(self._aside, self._place)

    def _move(self, source: Any, target: Any) -> None:
        """Moves a folder to a free path; raises ``Py4JJavaError`` if the path is not free."""
        if self._files.getScheme() not in _MOVES:
            self._copy(source, target)
            return
        options = self._jvm.org.apache.hadoop.fs.Options
        none = self._jvm.java.lang.reflect.Array.newInstance(options.Rename.NONE.getClass(), 0)
        context = self._jvm.org.apache.hadoop.fs.FileContext
        context.getFileContext(self._files.getUri(), self._conf).rename(source, target, none)

    def _copy(self, source: Any, target: Any) -> None:
        """Moves a folder in an object store; raises ``PySparkException`` if it can't."""
        self._has_only_rows = True
        failure = "the store gives no reason"
        try:
            if self._files.rename(source, target):
                self._has_only_rows = False
                return
        except Py4JJavaError as error:
            failure = in_words(error)
        raise PySparkException(
            f"{target.toString()} is incomplete: its new rows could not all be moved there from "
            f"{source.toString()} ({failure}). Run the statement again, then delete that folder"
        )
