"""The list of lake formats, and which of them a table has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hive_opt.spark.catalog.lakes.connect_delta import ConnectDelta
from airflow_hive_opt.spark.catalog.lakes.connect_iceberg import ConnectIceberg
from airflow_hive_opt.spark.catalog.lakes.delta import Delta
from airflow_hive_opt.spark.catalog.lakes.hudi import Hudi
from airflow_hive_opt.spark.catalog.lakes.iceberg import Iceberg
from airflow_hive_opt.spark.catalog.lakes.indexed_format import IndexedFormat
from airflow_hive_opt.spark.catalog.lakes.lake_format import LakeFormat
from airflow_hive_opt.spark.session.connect import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INDEXED: tuple[IndexedFormat, ...] = (Iceberg(), Delta())
_FORMATS: tuple[LakeFormat, ...] = (*_INDEXED, Hudi())
_OVER_CONNECT: tuple[LakeFormat, ...] = (ConnectIceberg(), ConnectDelta())
_BY_NAME = {each.name: each for each in _FORMATS}


def is_path(database: str, name: str) -> bool:
    """Whether a name after a database is the path of a table, and the database its format."""
    format_ = _BY_NAME.get(database.lower())
    return format_ is not None and format_.reads_paths and "/" in name


def named(session: SparkSession, provider: str) -> LakeFormat:
    """The format with which the session describes a table of the ``provider``."""
    return next(each for each in _of(session) if each.name == provider)


def loaded_format(session: SparkSession, loaded: Any) -> LakeFormat | None:
    """The format of a table that Spark's catalog loads; ``None`` if it is of no such format."""
    return next((each for each in _of(session) if each.is_loaded(session, loaded)), None)


def indexed_format(provider: str) -> IndexedFormat:
    """The format of a table whose columns can have key indexes.

    ``provider`` is one of those of :func:`~airflow_hive_opt.statement.lake_formats.is_indexable`.
    """
    return next(each for each in _INDEXED if each.name == provider)


def entry_format(metadata: Any) -> LakeFormat | None:
    """The format that Spark's metadata of a table of the metastore names, if any."""
    return next((each for each in _FORMATS if each.is_entry(metadata)), None)


def _of(session: SparkSession) -> tuple[LakeFormat, ...]:
    return _OVER_CONNECT if is_remote(session) else _FORMATS
