"""The files below a folder, as Spark itself lists them, also over Spark Connect."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from airflow_hive_opt.spark.session.spark_compat import condition_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

_PATTERN = re.compile(r"[][{}*?\\]")  # what Spark reads in a path as a pattern


def files_below(
    session: SparkSession, folder: str, asked: Callable[[DataFrame], DataFrame]
) -> list[Row]:
    """The rows of what is ``asked`` of the files; none if there is no such folder.

    ``asked`` gets the files with ``path``, ``length`` in bytes and ``modificationTime``. Files and
    folders whose names begin with a dot or an underscore are left out, but ``folder`` itself may be
    one. Raises Spark's other errors.
    """
    path = _PATTERN.sub(r"\\\g<0>", folder)
    read = session.read.format("binaryFile").option("recursiveFileLookup", "true")
    read = read.option("ignoreMissingFiles", "true")  # since Spark has listed them
    try:
        files = read.load(path).select("path", "length", "modificationTime")
        return list(asked(files).collect())
    except AnalysisException as error:
        if condition_of(error) != "PATH_NOT_FOUND":
            raise
        return []
