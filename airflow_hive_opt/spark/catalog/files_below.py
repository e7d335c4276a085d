"""The files below a folder, as Spark itself lists them, also over Spark Connect."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PATTERN = re.compile(r"[][{}*?\\]")  # what Spark reads in a path as a pattern

PATH_NOT_FOUND = "PATH_NOT_FOUND"
"""The condition of Spark's error if there is no such folder."""


def files_below(session: SparkSession, folder: str) -> DataFrame:
    """The files with ``path``, ``length`` in bytes and ``modificationTime``.

    Files and folders whose names begin with a dot or an underscore are left out, but ``folder``
    itself may be one. Raises Spark's errors, see :data:`PATH_NOT_FOUND`.
    """
    path = _PATTERN.sub(r"\\\g<0>", folder)
    read = session.read.format("binaryFile").option("recursiveFileLookup", "true")
    return read.load(path).select("path", "length", "modificationTime")
