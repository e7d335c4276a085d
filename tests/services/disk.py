"""A small disk of its own, which can be full or read-only."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(
    folder: Path, *options: str, kilobytes: int = 1024, in_use: bool = False
) -> Iterator[Path]:
    """A file system in memory that is mounted at the folder; skips the test without root.

    Fails at the end if a file of it is still open, unless ``in_use`` is set.
    """
    folder.mkdir(parents=True, exist_ok=True)
    given = ",".join((f"size={kilobytes}k", *options))
    command = ["mount", "-t", "tmpfs", "-o", given, "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount here")
    if done.returncode:
        pytest.skip(f"file systems can't be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        lazy = ["--lazy"] if in_use else []
        subprocess.run(["umount", *lazy, str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Leaves no byte free; returns the file that takes the space."""
    filler = folder / "filler"
    full = pytest.raises(OSError, match="No space left")
    with full, filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return filler
