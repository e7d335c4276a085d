"""The log of a Delta table, read with deltalake from a copy of the files that it needs.

The copy is made by the file system that the caller has opened. So the table's own connection reads
the log, and nothing is added to it between two reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Optional
from urllib.parse import unquote

from airflow_hive_opt.key_index.indexed_column import IndexingError, NotIndexable, in_words

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from airflow_hive_opt.documents.storage import StoragePath

LOG = "_delta_log"
_SIDECARS = "_sidecars"
_THREADS = 8
_COMMIT = re.compile(r"(\d{20})\.json")
_BY_PATH = re.compile(r"delta\.`([^`]+)`", re.I)
# A checkpoint is one file, by its version or with an ID of its own, or a number of parts.
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})\.parquet|\.[0-9A-Fa-f-]{36}\.(?:json|parquet)|\.parquet)"
)
# Words of deltalake's errors for tables that it can't read, however often it tries.
_NEVER = ("catalog-managed", "is not supported", "Schema error")


class IncompleteLogError(Exception):
    """Files of a log are missing."""


@dataclass(frozen=True)
class DeltaLog:
    """The current version of a table.

    ``folder`` is the table's in ``file_system``. ``schema`` is Spark's JSON. ``files`` are the data
    files: their paths as the log writes them, and their numbers of rows, or their bytes if these
    are not known.
    """

    file_system: Any
    folder: str
    table_id: str
    version: int
    reader: tuple[int, frozenset[str]]
    configuration: Mapping[str, str]
    schema: str
    partition_columns: tuple[str, ...]
    files: tuple[tuple[str, int], ...]

    def paths_since(self, since: Optional[int]) -> Optional[set[str]]:
        """The paths of all actions on files after a version; ``None`` if a commit is missing.

        ``since`` is ``None`` for all commits that the log still has. Raises errors of the storage.
        """
        log = f"{self.folder}/{LOG}"
        names = [each for each in _listed(self.file_system, log) if _COMMIT.fullmatch(each)]
        commits = {int(name[:20]): f"{log}/{name}" for name in names}
        wanted: Collection[int] = commits
        if since is not None:
            wanted = range(since + 1, self.version + 1)
            if since > self.version or not commits.keys() >= set(wanted):
                return None
        with ThreadPoolExecutor(_THREADS, "log") as threads:
            texts = threads.map(lambda at: self.file_system.cat_file(commits[at]), wanted)
            return {path for text in texts for path in _paths(text)}


@contextmanager
def opened(file_system: Any, log: str, listed: Collection[str]) -> Iterator[DeltaTable]:
    """The current version of the table, as long as the block lasts.

    :param log: the folder of the table's log in ``file_system``.
    :param listed: the names of the files in that folder.

    Copies the newest whole checkpoint with its sidecars, and the commits since. Raises
    :class:`IncompleteLogError`, and errors of the storage and of ``deltalake``.
    """
    import deltalake

    first, checkpoint = _newest_checkpoint(listed)
    names = [name for name in listed if _COMMIT.fullmatch(name) and int(name[:20]) >= first]
    commits = sorted(int(name[:20]) for name in names)
    # a commit may have the table's schema too, and deltalake then reads the files since it alone
    begins = (first, first + 1) if checkpoint else (0,)
    start = commits[0] if commits else -1
    if start not in begins or commits != list(range(start, start + len(commits))):
        raise IncompleteLogError("the table's log is empty or has gaps")

    with TemporaryDirectory() as table, ThreadPoolExecutor(_THREADS, "log") as threads:
        folder = Path(table, LOG)

        def copy(place: str) -> None:
            file_system.get_file(f"{log}/{place}", str(folder / place))

        (folder / _SIDECARS).mkdir(parents=True)
        list(threads.map(copy, [*names, *checkpoint]))
        sidecars = {name for each in checkpoint for name in _sidecars_of(folder / each)}
        list(threads.map(copy, (f"{_SIDECARS}/{name}" for name in sidecars)))
        yield deltalake.DeltaTable(table)


def folder_in(table: str) -> str:
    """The folder or URI that a table is called by; empty for a name.

    >>> folder_in("/w/t/"), folder_in("delta.`s3://lake/t`"), folder_in("dw.t")
    ('/w/t', 's3://lake/t', '')
    """
    found = _BY_PATH.fullmatch(table)
    path = found[1] if found else table
    return path.rstrip("/") if "/" in path else ""


def is_table(folder: StoragePath) -> bool:
    """Whether a folder is that of a Delta table; raises errors of the storage."""
    file_system: Any = folder.fs
    return bool(file_system.exists(f"{folder.path.rstrip('/')}/{LOG}"))


def why_unreadable(table: str) -> str:
    """Which libraries are missing to read a Delta table; empty if none is."""
    if all(find_spec(library) is not None for library in ("deltalake", "pyarrow")):
        return ""
    return (
        f"{table} is a Delta table, and deltalake or PyArrow is not installed: "
        "pip install 'airflow-hive-opt[delta]'"
    )


def read_log(name: str, folder: StoragePath) -> DeltaLog:
    """The table in a folder, at its current version; ``name`` is for messages.

    Raises :class:`~airflow_hive_opt.key_index.indexed_column.IndexingError`.
    """
    try:
        file_system, path = folder.fs, folder.path.rstrip("/")
        log = f"{path}/{LOG}"
        with opened(file_system, log, _listed(file_system, log)) as table:
            return _described(table, file_system, path)
    except Exception as error:  # of drivers, of deltalake
        why = in_words(error)
        kind = NotIndexable if any(words in why for words in _NEVER) else IndexingError
        raise kind(f"can't read the log of {name}: {why}") from error


def _described(table: DeltaTable, file_system: Any, folder: str) -> DeltaLog:
    import pyarrow as pa

    metadata, protocol = table.metadata(), table.protocol()
    added = pa.table(table.get_add_actions())
    paths, sizes = added.column("path").to_pylist(), added.column("size_bytes").to_pylist()
    rows = added.column("num_records").to_pylist() if "num_records" in added.column_names else sizes
    return DeltaLog(
        file_system,
        folder,
        str(metadata.id),
        int(table.version()),
        (protocol.min_reader_version, frozenset(protocol.reader_features or ())),
        dict(metadata.configuration),
        str(table.schema().to_json()),
        tuple(metadata.partition_columns),
        tuple(
            (str(path), int(size if count is None else count))
            for path, count, size in zip(paths, rows, sizes)
        ),
    )


def _newest_checkpoint(names: Collection[str]) -> tuple[int, Sequence[str]]:
    """The version and the files of the newest whole checkpoint; 0 and none without one."""
    checkpoints: dict[int, list[str]] = {}
    for name in names:
        if found := _CHECKPOINT.fullmatch(name):
            version, _, parts = found.groups()
            if parts is None or _has_all_parts(version, parts, names):
                checkpoints.setdefault(int(version), []).append(name)
    first = max(checkpoints, default=0)
    return first, checkpoints.get(first, ())


def _sidecars_of(checkpoint: Path) -> list[str]:
    """The names of the files to which a checkpoint has moved the table's data files."""
    found: list[dict[str, Any]]
    if checkpoint.suffix == ".json":
        lines = checkpoint.read_bytes().splitlines()
        actions = [json.loads(line) for line in lines if line.strip()]
        found = [action["sidecar"] for action in actions if action.get("sidecar")]
    else:
        import pyarrow.parquet as pq

        file = pq.ParquetFile(checkpoint)
        if "sidecar" not in file.schema_arrow.names:
            return []
        found = [each for each in file.read(["sidecar"]).column(0).to_pylist() if each]
    return [unquote(each["path"]).rpartition("/")[2] for each in found]


def _has_all_parts(version: str, parts: str, names: Collection[str]) -> bool:
    every = range(1, int(parts) + 1)
    return all(f"{version}.checkpoint.{at:010}.{parts}.parquet" in names for at in every)


def _listed(file_system: Any, log: str) -> list[str]:
    """The names of the files in the folder of a log."""
    file_system.invalidate_cache()
    try:
        entries = file_system.ls(log, detail=True)
    except FileNotFoundError:
        entries = []
    files = [str(entry["name"]) for entry in entries if entry["type"] == "file"]
    if not files:
        raise IncompleteLogError(f"there is no log in {log}")
    return [path.rpartition("/")[2] for path in files]


def _paths(commit: bytes) -> Iterable[str]:
    """The paths of the data files that a commit adds or removes."""
    for line in commit.splitlines():
        action = json.loads(line) if line.strip() else {}
        for kind in ("add", "remove"):
            if kind in action:
                yield str(action[kind]["path"])
