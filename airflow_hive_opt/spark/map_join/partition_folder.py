"""The folder of one partition, which is replaced by another that is complete."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JJavaError

log = logging.getLogger(__name__)

_PREFIX = ".hive-opt-"  # Spark and Hive read no folder whose name begins with a dot
_TRIES = 5
# Here a move is one step. Elsewhere it copies, and old files are removed instead of moved aside.
_MOVES = frozenset({"file", "hdfs", "viewfs"})


class PartitionFolder:
    """``fragment`` (``a=x/b=1``) below ``table``, both of Hadoop's, and a staging folder for it."""

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

    def remove_own(self) -> None:
        """Removes what was made beside the partition; never fails."""
        for folder in (self.staging, self._aside):
            try:
                self._files.delete(folder, True)
            except Py4JJavaError as failure:  # what has been written does not fail for it
                log.warning("%s is left behind: %s", folder.toString(), failure)

    def is_as_named(self) -> bool:
        """Whether what was staged is the partition's folder, or nothing."""
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

    def replace(self) -> None:
        """Puts the staged folder in the partition's place; without one, the place is empty.

        A move that fails puts the old folder back. Raises ``Py4JJavaError``.
        """
        staged = self._path(self.staging, self._fragment)
        if not self._files.exists(staged):
            self._files.delete(self._place, True)
            return
        self._files.mkdirs(self._place.getParent())
        for tries_left in reversed(range(_TRIES)):
            try:
                self._take_away()
                self._move(staged, self._place)
                return
            except Py4JJavaError:  # another run may have put its partition there meanwhile
                self._put_back()
                if not tries_left:
                    raise

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
            with suppress(Py4JJavaError):  # another run has put its partition there
                self._move(self._aside, self._place)

    def _move(self, source: Any, target: Any) -> None:
        """Moves a folder to where nothing is; raises ``Py4JJavaError`` where something is."""
        if self._files.getScheme() not in _MOVES:
            if not self._files.rename(source, target):
                raise OSError(f"{source.toString()} could not be moved to {target.toString()}")
            return
        options = self._jvm.org.apache.hadoop.fs.Options
        none = self._jvm.java.lang.reflect.Array.newInstance(options.Rename.NONE.getClass(), 0)
        context = self._jvm.org.apache.hadoop.fs.FileContext
        context.getFileContext(self._files.getUri(), self._conf).rename(source, target, none)
