"""Reads and atomically writes files in any storage that fsspec supports."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeAlias

    from upath import UPath
    from upath.extensions import ProxyUPath

StoragePath: TypeAlias = "UPath | ProxyUPath"
"""A path in any storage that fsspec supports; Airflow's ObjectStoragePath is one."""

KEY_SETS = "key_sets"
"""The folder of key sets with names: ``<root>/key_sets/<dag>/<name>/<digest>.json``."""
TEMPORARY_PREFIX = ".hive-opt-"
TEMPORARY_SUFFIX = ".tmp"
"""A file whose name has this prefix and suffix belongs to an unfinished write."""

# Storages where an object appears only after its upload is complete, and where a move is a copy.
_PUTS_WHOLE = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss", "oci", "memory"})
# Hadoop's names of a scheme, and fsspec's.
_SCHEMES = {"s3a": "s3", "s3n": "s3"}
_PIECE = 1024 * 1024
# Errors of file systems that can't sync a directory, mostly network file systems.
_NOT_SYNCED = (errno.EINVAL, errno.EBADF, errno.ENOTSUP)


class DescriptorError(Exception):
    """A descriptor or another document that can't be written, read or trusted."""


class NothingThereError(DescriptorError):
    """The file to read does not exist."""


def fsspec_uri(location: str) -> str:
    """The URI by which fsspec opens a folder of Hadoop's; a path without a scheme is local.

    >>> fsspec_uri("/w/sales"), fsspec_uri("file:/w/sales"), fsspec_uri("s3a://lake/sales")
    ('file:///w/sales', 'file:///w/sales', 's3://lake/sales')
    """
    scheme, _, rest = location.partition(":")
    if not rest or "/" in scheme:
        return f"file://{location}"
    if scheme == "file":
        return f"file:///{rest.lstrip('/')}"
    return f"{_SCHEMES.get(scheme, scheme)}:{rest}"


def write_atomically(data: bytes, path: StoragePath) -> None:
    """Writes a file that appears with all its content or not at all.

    An existing file stays until then. Only its owner can read a local file, and open the local
    folders that are made for it. Raises :class:`DescriptorError`.
    """
    try:
        file_system: Any = path.fs
        place = file_system._strip_protocol(path.path)
        named = file_system.protocol  # one name or several
        protocols = {named} if isinstance(named, str) else set(named)
        if "file" in protocols:
            _write_local(data, Path(place))
        elif _PUTS_WHOLE & protocols:
            file_system.pipe_file(place, data)
        else:
            _write_and_move(data, file_system, place)
    except Exception as error:  # drivers raise classes of their own
        raise DescriptorError(f"can't write {path}: {_words(error)}") from error


def read_bounded(path: StoragePath, most: int, what: str) -> bytes:
    """The file's bytes; the function never reads more than ``most + 1`` bytes.

    ``what`` names the file in errors, for example ``the descriptor``. Raises
    :class:`NothingThereError` if there is no file, and :class:`DescriptorError` if it has more
    than ``most`` bytes or can't be read.
    """
    pieces: list[bytes] = []
    left = most + 1
    try:
        with path.fs.open(path.path, "rb") as file:
            while left and (piece := file.read(min(left, _PIECE))):
                pieces.append(piece)
                left -= len(piece)
    except FileNotFoundError as error:
        raise NothingThereError(f"can't read {what} {path}: there is no such file") from error
    except Exception as error:  # drivers raise classes of their own
        raise DescriptorError(f"can't read {what} {path}: {_words(error)}") from error
    if not left:
        raise DescriptorError(f"can't read {what} {path}: it has more than {most:,} bytes")
    return b"".join(pieces)


def remove(path: StoragePath) -> None:
    """Removes the file if it is there; raises :class:`DescriptorError`."""
    try:
        path.fs.rm_file(path.path)
    except FileNotFoundError:
        return
    except Exception as error:  # drivers raise classes of their own
        raise DescriptorError(f"can't remove {path}: {_words(error)}") from error


def _write_local(data: bytes, path: Path) -> None:
    _make_folder(path.parent)
    temporary = path.with_name(_temporary_name())
    # No other process uses this name, and O_EXCL does not follow an existing link.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _make_folder(folder: Path) -> None:
    """Makes the folder and its parents for their owner alone: their names show DAGs and runs.

    ``Path.mkdir`` gives the mode to the last folder only.
    """
    try:
        folder.mkdir(0o700, exist_ok=True)
    except FileNotFoundError:
        _make_folder(folder.parent)
        folder.mkdir(0o700, exist_ok=True)


def _sync_folder(folder: Path) -> None:
    """Syncs the directory, so that the file's name survives a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NOT_SYNCED:
            raise
    finally:
        os.close(descriptor)


def _write_and_move(data: bytes, file_system: Any, place: str) -> None:
    """Writes a temporary file in the same directory, then moves it to ``place``.

    Some file systems refuse to move to an existing name, or silently do nothing. So an existing
    file is renamed first, and restored if the move fails.
    """
    folder = file_system._parent(place)
    temporary, aside = (f"{folder.rstrip('/')}/{_temporary_name()}" for _ in range(2))
    file_system.makedirs(folder, exist_ok=True)
    stepped_aside = False
    try:
        with file_system.open(temporary, "wb") as file:
            file.write(data)
        if file_system.exists(place):
            _move(file_system, place, aside)
            stepped_aside = True
        _move(file_system, temporary, place)
    except BaseException:
        with contextlib.suppress(Exception):  # the first error is the one to report
            file_system.rm_file(temporary)
        if stepped_aside:
            with contextlib.suppress(Exception):
                _move(file_system, aside, place)
        raise
    if stepped_aside:
        with contextlib.suppress(Exception):  # cleaning deletes the old file
            file_system.rm_file(aside)


def _move(file_system: Any, source: str, target: str) -> None:
    file_system.mv(source, target)
    if file_system.exists(source):
        raise OSError(f"{source} can't be moved to {target}")


def _temporary_name() -> str:
    return f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}{TEMPORARY_SUFFIX}"


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
