"""Counts the files that this process opens, whichever library opens them: by Linux's inotify."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OPEN, _OVERFLOW = 0x20, 0x4000
_HEAD = struct.Struct("iIII")


@contextmanager
def opened(folder: Path, ending: str = ".parquet") -> Iterator[set[str]]:
    """The paths of the files below ``folder`` that are opened, once the context has ended.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     for each in ("a.parquet", "b.parquet"):
    ...         _ = Path(name, each).write_text("")
    ...     with opened(Path(name)) as found:
    ...         _ = Path(name, "b.parquet").read_text()
    ...     print([Path(path).name for path in found])
    ['b.parquet']
    """
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = library.inotify_init1(os.O_NONBLOCK)
    watched = {}
    for place, _, _ in os.walk(folder):
        number = library.inotify_add_watch(descriptor, os.fsencode(place), _OPEN)
        if number < 0:
            raise OSError(ctypes.get_errno(), "a folder can't be watched", place)
        watched[number] = place
    found: set[str] = set()
    ended = threading.Event()

    def read() -> None:
        while True:
            last = ended.is_set()  # before reading, so that nothing is missed
            try:
                data = os.read(descriptor, 1 << 20)
            except BlockingIOError:
                if last:
                    return
                time.sleep(0.005)
                continue
            at = 0
            while at < len(data):
                number, mask, _, length = _HEAD.unpack_from(data, at)
                name = data[at + _HEAD.size : at + _HEAD.size + length].rstrip(b"\0").decode()
                at += _HEAD.size + length
                if mask & _OVERFLOW:
                    found.add("OVERFLOW")
                elif name.endswith(ending):
                    found.add(f"{watched[number]}/{name}")

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield found
    finally:
        ended.set()
        reader.join()
        os.close(descriptor)
        if "OVERFLOW" in found:
            raise OSError("more files were opened than could be counted")
