"""The files in a folder, as Hadoop lists them for Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# In the text of Hadoop's FileStatus; a path has no semicolon with these words after it.
_ENTRY = re.compile(
    r"path=(?P<path>[^\n]*?); isDirectory=(?P<folder>\w+);(?: length=(?P<length>\d+);)?[^\n]*?"
    r"modification_time=(?P<time>\d+);"
)


@dataclass(frozen=True)
class Entry:
    """A file or folder: its name, bytes, and last change in milliseconds since 1970."""

    name: str
    is_folder: bool
    size: int
    changed: int


def entries(session: SparkSession, location: str) -> list[Entry]:
    """What is directly in the folder, by two calls to the JVM.

    Raises ``Py4JJavaError``, and ``ValueError`` for names that can't be told apart.
    """
    jvm: Any = session._jvm
    path = jvm.org.apache.hadoop.fs.Path(location)
    state: Any = session._jsparkSession.sessionState()
    statuses = path.getFileSystem(state.newHadoopConf()).listStatus(path)
    text = str(jvm.org.apache.commons.lang3.ArrayUtils.toString(statuses))  # takes any object
    found = list(_ENTRY.finditer(text))
    if len(found) != text.count("; isDirectory="):
        raise ValueError(f"the files in {location} have unusual names")
    return [
        Entry(
            each["path"].rpartition("/")[2],
            each["folder"] == "true",
            int(each["length"] or 0),
            int(each["time"]),
        )
        for each in found
    ]
