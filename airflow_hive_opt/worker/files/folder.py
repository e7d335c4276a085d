"""The data files of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.worker.unanswered import Unanswered

if TYPE_CHECKING:
    from airflow_hive_opt.documents.storage import StoragePath


@dataclass(frozen=True)
class DataFile:
    """A file of a table; ``size`` is in bytes, ``changed`` in whole seconds since 1970."""

    file_system: Any
    path: str
    size: int
    changed: int

    @property
    def name(self) -> str:
        """The name in its folder."""
        return self.path.rpartition("/")[2]

    def open(self) -> Any:
        """The file, for reading bytes at any position."""
        return self.file_system.open(self.path, "rb")


def data_files(folder: StoragePath) -> list[DataFile]:
    """The files with rows directly in the folder, by name.

    Spark ignores hidden and empty files. Whether it reads folders inside depends on settings, so
    they raise :class:`Unanswered`, as does a folder that can't be listed.
    """
    file_system, entries = _listed(folder)
    return sorted(_data(file_system, folder, entries), key=lambda file: file.path)


def listed_files(folder: StoragePath) -> list[DataFile]:
    """All files directly in a folder that can be listed; else raises :class:`Unanswered`."""
    file_system, entries = _listed(folder)
    return [
        DataFile(
            file_system,
            str(entry["name"]),
            int(entry.get("size") or 0),
            _changed(file_system, entry),
        )
        for entry in entries
        if entry["type"] == "file"
    ]


def _listed(folder: StoragePath) -> tuple[Any, list[Any]]:
    try:
        file_system: Any = folder.fs
        file_system.invalidate_cache()
        return file_system, file_system.ls(folder.path, detail=True)
    except Exception as error:  # drivers raise classes of their own
        raise Unanswered(f"can't list {folder}: {error}") from error


def _data(file_system: Any, folder: StoragePath, entries: list[Any]) -> Iterator[DataFile]:
    itself = folder.path.rstrip("/")
    for entry in entries:
        path, size = str(entry["name"]), int(entry.get("size") or 0)
        name = path.rstrip("/").rpartition("/")[2]
        if path.rstrip("/").endswith(itself) and name == itself.rpartition("/")[2]:
            if size:
                raise Unanswered(f"the place of a table or partition, {folder}, is a file")
            continue  # an object store's own mark of the folder
        if name.endswith("._COPYING_") or (name.startswith("_") and "=" in name):
            raise Unanswered(f"readers differ on whether {path} is a data file")
        if name.startswith(("_", ".")):
            continue
        if entry["type"] != "file":
            what = f"a folder inside a table's: {name} in {folder}"
            raise Unanswered(f"the worker does not read {what}")
        if size:
            yield DataFile(file_system, path, size, _changed(file_system, entry))


def _changed(file_system: Any, entry: Any) -> int:
    """When the file was last changed; drivers name and type it differently."""
    known = entry.get("LastModified") or entry.get("mtime")
    if isinstance(known, (int, float)):
        return int(known)
    if not isinstance(known, datetime):
        known = file_system.modified(entry["name"])
    return int(known.timestamp())
