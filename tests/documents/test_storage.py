"""Files that appear whole or not at all, on disks that are really full, read-only or in the way."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.providers.common.compat.sdk import ObjectStoragePath
from fsspec.implementations.memory import MemoryFileSystem
from upath import UPath

from airflow_hive_opt.documents.storage import (
    DescriptorError,
    NothingThereError,
    read_bounded,
    remove,
    write_atomically,
)
from tests.services.disk import small_disk

GOOD = b"good" * 1000


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("made", [UPath, ObjectStoragePath])
def test_only_the_owner_may_read_a_local_file(tmp_path, made):
    path = made(tmp_path / "a" / "b" / "x.json")
    for data in (b"first", GOOD, b""):
        write_atomically(data, path)
        assert read_bounded(path, 10_000, "it") == data
        local = tmp_path / "a" / "b" / "x.json"
        assert stat.S_IMODE(local.stat().st_mode) == 0o600
        assert names(local.parent) == ["x.json"]


@pytest.mark.parametrize("made", [UPath, ObjectStoragePath])
def test_only_the_owner_may_open_new_local_folders(tmp_path, made):
    """Their names show DAGs, runs and tasks; a folder that is there keeps its permissions."""
    there = tmp_path / "descriptors"
    there.mkdir()
    there.chmod(0o775)
    before = os.umask(0)
    try:
        for name in ("1.json", "2.json"):
            write_atomically(GOOD, made(there / "dag" / "run" / "task" / name))
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((there / each).stat().st_mode) for each in ("", "dag", "dag/run")]
    assert modes == [0o775, 0o700, 0o700]
    assert names(there / "dag" / "run" / "task") == ["1.json", "2.json"]


def test_a_file_may_have_the_longest_possible_name(tmp_path):
    path = UPath(tmp_path) / ("x" * 255)
    write_atomically(GOOD, path)
    assert path.read_bytes() == GOOD


def test_a_full_disk_leaves_the_old_file_unchanged(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        path = UPath(disk) / "x.json"
        write_atomically(GOOD, path)
        for _ in range(3):
            with pytest.raises(DescriptorError, match=r"can't write .*No space left on device"):
                write_atomically(b"x" * 2_000_000, path)
            assert path.read_bytes() == GOOD
            assert names(disk) == ["x.json"]


def test_a_full_temporary_folder_does_not_matter(tmp_path):
    """A folder for temporary files of the system's is on another disk than the file."""
    script = (
        "import sys\n"
        "from upath import UPath\n"
        "from airflow_hive_opt.documents.storage import write_atomically\n"
        "write_atomically(b'x' * 2_000_000, UPath(sys.argv[1]))\n"
    )
    path = tmp_path / "x.json"
    path.write_bytes(GOOD)
    with small_disk(tmp_path / "temporary") as temporary:
        subprocess.run(
            [sys.executable, "-c", script, str(path)],
            env={"TMPDIR": str(temporary), "PYTHONPATH": str(Path(__file__).parents[2])},
            check=True,
        )
        assert names(temporary) == []
    assert path.read_bytes() == b"x" * 2_000_000


def test_a_read_only_disk_is_an_error_and_keeps_the_file(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        path = UPath(disk) / "x.json"
        write_atomically(GOOD, path)
        command = ["mount", "-o", "remount,ro", str(disk)]
        subprocess.run(command, check=True)
        with pytest.raises(DescriptorError, match=r"can't write .*Read-only file system"):
            write_atomically(b"new", path)
        with pytest.raises(DescriptorError, match=r"can't remove .*Read-only file system"):
            remove(path)
        assert path.read_bytes() == GOOD


def test_a_file_in_place_of_a_folder_and_the_reverse_are_errors(tmp_path):
    (tmp_path / "file").write_text("")
    path = UPath(tmp_path) / "file" / "x.json"
    with pytest.raises(DescriptorError, match="can't write"):
        write_atomically(GOOD, path)
    with pytest.raises(DescriptorError, match="can't read it"):
        read_bounded(path, 10, "it")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DescriptorError, match=r"can't write .*Is a directory"):
        write_atomically(GOOD, UPath(tmp_path) / "folder")
    with pytest.raises(DescriptorError, match=r"can't remove .*Is a directory"):
        remove(UPath(tmp_path) / "folder")
    with pytest.raises(DescriptorError, match="can't read it .*Is a directory"):
        read_bounded(UPath(tmp_path) / "folder", 10, "it")
    assert names(tmp_path) == ["file", "folder"]


@pytest.mark.parametrize("made", [UPath, ObjectStoragePath])
def test_a_storage_whose_library_is_missing_is_an_error(made):
    path = made("gs://bucket/x.json")
    with pytest.raises(DescriptorError, match="can't write gs://bucket/x.json"):
        write_atomically(GOOD, path)
    with pytest.raises(DescriptorError, match="can't read it gs://bucket/x.json"):
        read_bounded(path, 10, "it")


def test_reading_stops_at_the_limit_and_a_removed_file_is_missing(tmp_path):
    path = UPath(tmp_path) / "x.json"
    write_atomically(GOOD, path)
    assert read_bounded(path, len(GOOD), "it") == GOOD
    with pytest.raises(DescriptorError, match="more than 3,999 bytes"):
        read_bounded(path, len(GOOD) - 1, "it")
    remove(path)
    remove(path)
    with pytest.raises(NothingThereError, match="can't read it .*there is no such file"):
        read_bounded(path, 10, "it")


class Driver(Exception):
    """As drivers have: no ``OSError``."""


class ObjectStore(MemoryFileSystem):
    """Puts whole; ``broken`` says what fails."""

    protocol = "s3"
    store, pseudo_dirs = {}, [""]
    broken: frozenset[str] = frozenset()

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        if "write" in self.broken:
            raise Driver
        super().pipe_file(path, value, mode, **kwargs)

    def _open(self, path, mode="rb", *args, **kwargs):
        if mode == "rb" and "read" in self.broken:
            raise Driver("no credentials")
        return super()._open(path, mode, *args, **kwargs)

    def mv(self, *_args, **_kwargs):
        raise AssertionError("a move is a copy here")


class Hadoop(MemoryFileSystem):
    """Refuses to move to an existing name; ``silent`` gives no error, as WebHDFS does."""

    protocol = "hdfs"
    store, pseudo_dirs = {}, [""]
    broken: frozenset[str] = frozenset()

    def mv(self, path1, path2, **_):
        if self.exists(path2) or ("mv" in self.broken and path2.endswith("x.json")):
            if "silent" in self.broken:
                return
            raise Driver(f"{path2} exists")
        super().mv(path1, path2)

    def pipe_file(self, *_args, **_kwargs):
        raise AssertionError("a file that is put is seen while it grows")


def path_of(file_system: MemoryFileSystem, name: str) -> SimpleNamespace:
    """The methods of a path that the code uses; no such storage runs here."""
    return SimpleNamespace(fs=file_system, path=name)


def test_an_object_store_gets_the_whole_file_in_one_put(monkeypatch):
    store = ObjectStore(skip_instance_cache=True)
    path = path_of(store, "/b/x.json")
    write_atomically(GOOD, path)
    write_atomically(GOOD * 2, path)
    assert read_bounded(path, 10_000, "it") == GOOD * 2
    assert store.find("/") == ["/b/x.json"]
    monkeypatch.setattr(store, "broken", {"read", "write"})
    with pytest.raises(DescriptorError, match="can't write .*: Driver"):
        write_atomically(b"", path)
    with pytest.raises(DescriptorError, match="can't read it .*: no credentials"):
        read_bounded(path, 10, "it")


@pytest.mark.parametrize("silent", [frozenset(), frozenset({"silent"})])
def test_other_file_systems_get_a_temporary_file_that_is_moved(monkeypatch, silent):
    hadoop = Hadoop(skip_instance_cache=True)
    hadoop.store.clear()
    monkeypatch.setattr(hadoop, "broken", silent)
    path = path_of(hadoop, "/a/b/x.json")
    for data in (GOOD, GOOD * 2):
        write_atomically(data, path)
        assert read_bounded(path, 10_000, "it") == data
        assert hadoop.find("/") == ["/a/b/x.json"]
    monkeypatch.setattr(hadoop, "broken", {*silent, "mv"})
    with pytest.raises(DescriptorError, match="can't write"):
        write_atomically(b"new", path)
    # What has stepped aside can't come back here either, but it is not lost.
    (left,) = hadoop.find("/")
    assert hadoop.cat_file(left) == GOOD * 2


def test_an_old_file_that_was_moved_aside_is_restored(monkeypatch):
    hadoop = Hadoop(skip_instance_cache=True)
    hadoop.store.clear()
    path = path_of(hadoop, "/a/x.json")
    write_atomically(GOOD, path)
    moves = []

    def mv(path1, path2, **_):
        moves.append(path2)
        if len(moves) == 2:
            raise Driver("no more space")
        MemoryFileSystem.mv(hadoop, path1, path2)

    monkeypatch.setattr(hadoop, "mv", mv)
    with pytest.raises(DescriptorError, match="no more space"):
        write_atomically(b"new", path)
    assert hadoop.find("/") == ["/a/x.json"]
    assert read_bounded(path, 10_000, "it") == GOOD
