"""The data files of the partitions to read, in any storage that fsspec supports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from upath import UPath

from airflow_hive_opt.documents.storage import StoragePath, fsspec_uri
from airflow_hive_opt.engines.scan import EngineError, PrunedScan
from airflow_hive_opt.engines.values import Value, partition_values
from airflow_hive_opt.metastores.partition_names import partition_name
from airflow_hive_opt.worker.files.folder import data_files
from airflow_hive_opt.worker.unanswered import Unanswered

OpenPath = Callable[[str], StoragePath]


@dataclass(frozen=True)
class ListedFile:
    """A data file, with the values of its partition's columns."""

    file_system: Any
    path: str
    values: tuple[Value | None, ...]

    @property
    def is_local(self) -> bool:
        """Whether the file is on this machine."""
        return "file" in self.file_system.protocol

    @property
    def uri(self) -> str:
        """The path of a local file, else the URI."""
        return self.path if self.is_local else str(self.file_system.unstrip_protocol(self.path))


@dataclass(frozen=True)
class ListedFiles:
    """The files of a scan. Without any, ``example`` is another file of the table.

    It tells the columns of a table of which no row is needed.
    """

    files: tuple[ListedFile, ...]
    example: ListedFile | None

    @property
    def with_columns(self) -> tuple[ListedFile, ...]:
        """The files from which the columns are known."""
        return (self.example,) if self.example else self.files


def open_uri(uri: str) -> UPath:
    """A path of a URI with one of Hadoop's schemes, by the environment's credentials.

    >>> open_uri("file:/w/sales").path, open_uri("/w/sales").path
    ('/w/sales', '/w/sales')
    """
    return UPath(fsspec_uri(uri))


def files_of(scan: PrunedScan, open_path: OpenPath = open_uri) -> ListedFiles:
    """The data files of the scan's partitions; other folders are not listed.

    ``open_path`` makes a path of a URI; an Airflow connection needs an ``ObjectStoragePath``.
    Raises :class:`EngineError`.
    """
    if scan.partitions is None:
        raise EngineError(f"the descriptor has no list of partitions of {scan.table}")
    found: list[ListedFile] = []
    for partition in scan.partitions:
        if partition.location is None:
            name = partition_name(scan.columns, partition.values)
            raise EngineError(
                f"the descriptor does not have the folder of {scan.table}'s partition {name}: "
                "get it from the metastore with located()"
            )
        values = tuple(partition_values(scan, partition))
        try:
            listed = data_files(open_path(partition.location))
        except (Unanswered, ValueError, ImportError) as why:
            raise EngineError(f"can't list the files of {scan.table}: {why}") from None
        found += (ListedFile(file.file_system, file.path, values) for file in listed)
    if twice := [path for path, times in Counter(file.uri for file in found).items() if times > 1]:
        raise EngineError(
            f"two partitions of {scan.table} have the same file {twice[0]}, so its name does not "
            "tell the values of its rows"
        )
    return ListedFiles(tuple(found), None if found else _example(scan, open_path))


def _example(scan: PrunedScan, open_path: OpenPath) -> ListedFile:
    """The first data file in the table's folder, but not in folders of jobs that are writing."""
    if scan.location is not None:
        path = open_path(scan.location)
        file_system: Any = path.fs
        for folder, _, names in file_system.walk(path.path):
            inner = folder.removeprefix(path.path).strip("/")
            if inner and any(map(_is_hidden, inner.split("/"))):
                continue
            for name in sorted(names):
                file = f"{folder.rstrip('/')}/{name}"
                if not _is_hidden(name) and file_system.size(file):
                    return ListedFile(file_system, file, (None,) * len(scan.columns))
    raise EngineError(
        f"no row of {scan.table} is needed, and its folder {scan.location} has no file that tells "
        "its columns"
    )


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", ".")) and "=" not in name
