"""Delta tables, whose log the ``deltalake`` package reads: the partitions that they lack.

Only the log is read, no data file and no Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.metastores.lakes import Absent, CatalogError
from airflow_hive_opt.metastores.partitions import Value
from airflow_hive_opt.metastores.required import Required, Tuples
from airflow_hive_opt.statement.types import family

if TYPE_CHECKING:
    from deltalake import DeltaTable

NO_DELTALAKE = "to wait for Delta tables, install deltalake: pip install 'airflow-hive-opt[delta]'"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# What the log calls the types that keys can have.
_TYPES = {
    "integer": ("byte", "short", "integer", "long"),
    "string": ("string",),
    "date": ("date",),
}
_PHYSICAL = "delta.columnMapping.physicalName"
_FILE = re.compile(r"^file:/+")


class DeltaTables:
    """Delta tables by their locations.

    :param options: the storage options of ``deltalake``. They may contain secrets.

    Raises :class:`~airflow_hive_opt.metastores.lakes.CatalogError` if ``deltalake`` is not
    installed.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        if find_spec("deltalake") is None:
            raise CatalogError(NO_DELTALAKE)
        self._options = dict(options)
        self._earlier: dict[Required, tuple[tuple[str, int], Absent]] = {}

    def close(self) -> None:
        """Does nothing: no connection stays open."""

    def absent(self, required: Required) -> Absent:
        """The required tuples for which no file of the current version has the partition.

        A table that does not exist has none. Its list of files is read if its version has changed
        since the last call. Raises :class:`~airflow_hive_opt.metastores.lakes.CatalogError`.
        """
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            table = DeltaTable(_FILE.sub("/", required.location), storage_options=self._options)
            version = str(table.metadata().id), int(table.version())
            known = self._earlier.get(required)
            if known is not None and known[0] == version:
                return known[1]
            found = Absent(_missing(table, required))
        except TableNotFoundError:
            return Absent(required.tuples, f"there is no Delta table at {required.location}")
        except Exception as error:  # noqa: BLE001 - of the storage's client, whichever it is
            raise self._in_words(error) from None
        self._earlier[required] = version, found
        return found

    def _in_words(self, error: Exception) -> CatalogError:
        """The first line of the error's text, with stars in place of the options' values."""
        text = (str(error).strip() or type(error).__name__).splitlines()[0]
        for value in sorted(self._options.values(), key=len, reverse=True):
            text = text.replace(value, "***") if len(value) > 3 else text
        return CatalogError(text if len(text) <= 500 else f"{text[:500]}...")


def _missing(table: DeltaTable, required: Required) -> Tuples:
    """The required tuples that the log lacks; raises ``ValueError`` for changed columns."""
    names = [_stored_name(table, required, at) for at in range(len(required.columns))]
    files = table.get_add_actions(flatten=True)
    if not files.num_rows:
        return required.tuples
    columns = [files.column(f"partition.{name}").to_pylist() for name in names]
    present = {tuple(map(_value, row)) for row in zip(*columns)}
    return tuple(row for row in required.tuples if row not in present)


def _stored_name(table: DeltaTable, required: Required, at: int) -> str:
    """The name that a required column has in the log: in another case, or by column mapping."""
    name, type_ = required.columns[at], required.types_of_columns[at]
    fields: Sequence[Any] = table.schema().fields
    field = next((each for each in fields if each.name.lower() == name), None)
    partitioned = [each.lower() for each in table.metadata().partition_columns]
    if field is None or name not in partitioned:
        raise ValueError(f"{required.table} is not partitioned by {name}")
    expected = _TYPES.get(family(type_) or "", ("timestamp",))
    stored = str(getattr(field.type, "type", field.type))
    if stored not in expected:
        raise ValueError(
            f"the column {name} of {required.table} is a {stored} in its log, but Spark reads it "
            f"as {type_}"
        )
    return str((field.metadata or {}).get(_PHYSICAL, field.name))


def _value(stored: Any) -> Value | None:
    """A value as keys have it: a time is the number of microseconds since 1970 in UTC."""
    if not isinstance(stored, datetime):
        found: Value | None = stored
        return found
    since = stored - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
