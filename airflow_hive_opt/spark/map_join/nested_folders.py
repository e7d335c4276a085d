"""Partition folders that a commit has moved one level too deep, because two jobs made them at once.

Hadoop's committer looks whether ``TABLE/day=1`` exists. If it does not, the committer renames the
whole folder of a task to it. If another job makes ``TABLE/day=1`` in between, a rename on HDFS and
on local disks puts the folder inside: ``TABLE/day=1/day=1``. It reports success, and no reader
finds these rows. S3A refuses such a rename, so that the job fails.

On local disks, that rename copies the files one by one. A file stays below ``TABLE/_temporary``
until its copy is complete, and is left to the job that copies it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError

_ROUNDS = 3  # of looking and moving, while other jobs do the same


def move_out(jvm: Any, files: Any, table: Any, levels: int, shared: Any, since: int) -> list[str]:
    """Moves files out of nested folders below ``table``; returns the files that are left.

    ``files`` is the Hadoop file system of the path ``table``, which has ``levels`` of partition
    folders. Jobs commit from the folder ``shared`` below it. ``since`` is a time of the file system
    in milliseconds: files that are older, which an earlier job has lost, stay where they are, and
    partitions that have not changed since are not listed. Raises ``Py4JError``.
    """
    for last in (False,) * _ROUNDS + (True,):
        try:
            nested = _nested(files, table, levels, since)
            found = {place: _files_below(files, place, since) for place in nested}
            copied = {each.getName() for each in _files_below(files, shared)} if nested else set()
            left = [
                (place, each)
                for place, below in found.items()
                for each in below
                if each.getName() not in copied
            ]
            if last:
                return [each.toString() for _, each in left]
            for place, each in left:
                _move(jvm, files, place, each)
            for place in nested:
                _remove_empty(jvm, files, place)
            if not nested:
                return []
        except Py4JError:  # another job moves the same files, or ends
            if last:
                raise
    return []


def remove_if_empty(jvm: Any, files: Any, folder: Any) -> None:
    """Raises ``Py4JError`` if something is in the folder, also if that has come at this moment.

    Hadoop's local file system would remove it too.
    """
    if files.getUri().getScheme() == "file":
        place = jvm.java.nio.file.Paths.get(files.makeQualified(folder).toUri())
        jvm.java.nio.file.Files.delete(place)
    else:
        files.delete(folder, False)


def _nested(
    files: Any, folder: Any, levels: int, since: int, parent: str | None = None
) -> list[Any]:
    """``parent`` is the name of ``folder`` if that is a partition's, so not the table's own.

    A new folder changes the time of the folder that it is in, but not of those further up.
    """
    found = []
    for child in files.listStatus(folder):
        path = child.getPath()
        name = path.getName()
        if not child.isDirectory() or "=" not in name:
            continue
        if name == parent:
            found.append(path)
        elif levels > 1 or child.getModificationTime() >= since:
            found += _nested(files, path, levels - 1, since, name)
    return found


def _files_below(files: Any, folder: Any, since: int = 0) -> list[Any]:
    found, rest = [], files.listFiles(folder, True)
    while rest.hasNext():
        file = rest.next()
        if file.getModificationTime() >= since:
            found.append(file.getPath())
    return found


def _move(jvm: Any, files: Any, nested: Any, file: Any) -> None:
    """Moves a file, whose name is unique, from below ``T/a=1/a=1`` to the place below ``T/a=1``."""
    below = nested.toUri().relativize(file.toUri())
    path = jvm.org.apache.hadoop.fs.Path
    target = path(nested.getParent(), path(below))
    files.mkdirs(target.getParent())
    files.rename(file, target)


def _remove_empty(jvm: Any, files: Any, folder: Any) -> None:
    """Removes the folders that no file is in; other jobs may do the same."""
    for child in files.listStatus(folder):
        if child.isDirectory():
            _remove_empty(jvm, files, child.getPath())
    with suppress(Py4JError):
        remove_if_empty(jvm, files, folder)
