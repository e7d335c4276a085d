"""Files of Iceberg tables for PyIceberg, opened as the worker opens all files of tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyiceberg.io import FileIO, InputFile, OutputFile

if TYPE_CHECKING:
    from airflow_hive_opt.documents.storage import StoragePath


class PathIO(FileIO):
    """Reads through paths that ``open_path`` makes of URIs; writes nothing."""

    def __init__(self, open_path: Callable[[str], StoragePath]) -> None:
        super().__init__()
        self._open_path = open_path

    def new_input(self, location: str) -> InputFile:
        """See ``FileIO``."""
        return _File(location, self._open_path(location))

    def new_output(self, location: str) -> OutputFile:
        """Raises ``PermissionError``."""
        raise PermissionError(f"the worker does not write or delete {location}")

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Raises ``PermissionError``."""
        raise PermissionError(f"the worker does not write or delete {location}")


class _File(InputFile):
    def __init__(self, location: str, path: StoragePath) -> None:
        super().__init__(location)
        self._path = path

    def __len__(self) -> int:
        return int(self._path.fs.size(self._path.path))

    def exists(self) -> bool:
        return bool(self._path.fs.exists(self._path.path))

    def open(self, seekable: bool = True) -> Any:  # noqa: ARG002 - all are seekable
        return self._path.fs.open(self._path.path, "rb")
