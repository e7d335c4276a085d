"""The files in the folder of an index: which of its parts are there, and which files are left over.

A reader may have read an earlier manifest. So a file that no part uses any more stays for a day.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_hive_opt.documents.log_text import plain
from airflow_hive_opt.documents.storage import (
    TEMPORARY_PREFIX,
    TEMPORARY_SUFFIX,
    DescriptorError,
    remove,
)
from airflow_hive_opt.key_index.manifest import KeyIndex, without
from airflow_hive_opt.key_index.part import NAME

if TYPE_CHECKING:
    from airflow_hive_opt.documents.storage import StoragePath

log = logging.getLogger(__name__)
KEPT = 24 * 3600
"""Seconds that a file stays after the last manifest that names it."""
_OWN = re.compile(
    rf"{NAME.pattern}|{re.escape(TEMPORARY_PREFIX)}[0-9a-f]+{re.escape(TEMPORARY_SUFFIX)}"
)


class StoredParts:
    """The folder of one index."""

    def __init__(self, folder: StoragePath) -> None:
        self.folder = folder

    def covered(self, index: KeyIndex) -> tuple[set[str], KeyIndex]:
        """The data files that the index covers, and the index without parts that are not whole.

        Raises :class:`DescriptorError` if the folder can't be listed.
        """
        sizes = self._sizes()
        covered: set[str] = set()
        lost = []
        for part in index.parts:
            try:
                if sizes.get(part.pairs.name) != part.pairs.size:
                    raise DescriptorError(f"{self.folder / part.pairs.name} is not whole")
                covered.update(part.read_paths(self.folder))
            except DescriptorError as error:
                log.warning("indexing the data files of a part again: %s", plain(str(error)))
                lost.append(part)
        if lost:
            index = replace(without(index, lost), snapshot_id=None)
        return covered, index

    def cleaned(self, index: KeyIndex) -> KeyIndex:
        """The index without old retired files; removes these, and those of other builders.

        A failure is only logged.
        """
        before = time.time() - KEPT
        due = {each.name for each in index.retired if each.since < before}
        named = {file.name for part in index.parts for file in (part.pairs, part.paths)}
        named |= {each.name for each in index.retired}
        try:
            for name in self._sizes():
                if _OWN.fullmatch(name) and name not in named and self._changed(name) < before:
                    due.add(name)
            for name in sorted(due):
                remove(self.folder / name)
        except (DescriptorError, OSError) as error:
            log.warning("can't remove old files of the key index: %s", plain(str(error)))
            return index
        return replace(index, retired=tuple(each for each in index.retired if each.name not in due))

    def _sizes(self) -> Mapping[str, int]:
        """The files in the folder, with their sizes in bytes; raises :class:`DescriptorError`."""
        try:
            self.folder.fs.invalidate_cache()
            listed = self.folder.fs.ls(self.folder.path, detail=True)
        except FileNotFoundError:
            return {}
        except Exception as error:  # drivers raise classes of their own
            raise DescriptorError(f"can't list {self.folder}: {error}") from error
        return {str(each["name"]).rpartition("/")[2]: int(each["size"] or 0) for each in listed}

    def _changed(self, name: str) -> float:
        """When a file was last written, in seconds since 1970."""
        return float((self.folder / name).stat().st_mtime)
