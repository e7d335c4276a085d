"""Where the record of a statement on a Spark Connect server is: each attempt of its task finds it.

It is in Airflow's store of the task's state, and before Airflow 3.3 in a file, in the folder of the
task's attempts.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from airflow_hive_opt.documents.storage import (
    DescriptorError,
    NothingThereError,
    read_bounded,
    remove,
)
from airflow_hive_opt.provider.airflow_compat import AirflowException
from airflow_hive_opt.provider.without_stack import without_stack

if TYPE_CHECKING:
    from airflow_hive_opt.documents.remote_operation import RemoteOperation
    from airflow_hive_opt.documents.storage import StoragePath
    from airflow_hive_opt.provider.airflow_compat import Context

_KEY = "spark_connect_operation"
_FILE = "operation.json"


class UnreadableRecord(AirflowException):
    """A record that can't be read; ``cause`` is its field of that name, if that can be read."""

    def __init__(self, why: object, where: str, cause: str | None) -> None:
        way_out = "clear the task" if cause is not None else f"delete {where}"
        super().__init__(
            f"nothing shows whether the statement of an earlier try has ended: {why}. Once it has "
            f"ended, {way_out}"
        )
        self.cause = cause


class OperationRecord:
    """The record of one task instance; ``path`` is an attempt's."""

    def __init__(self, context: Context, path: StoragePath) -> None:
        self._store = context.get("task_state_store")
        self._file = path.with_name(_FILE)

    def read(self) -> RemoteOperation | None:
        """The record, if there is one; raises :class:`UnreadableRecord`."""
        from airflow_hive_opt.documents.remote_operation import REMOTE_OPERATION

        data = b""
        try:
            data = self._bytes()
            return REMOTE_OPERATION.decode(data) if data else None
        except NothingThereError:
            return None
        except DescriptorError as error:
            where = f"the file {self._file}" if self._store is None else f"{_KEY!r} from its state"
            raise without_stack(UnreadableRecord(error, where, _cause_in(data))) from None

    def _bytes(self) -> bytes:
        from airflow_hive_opt.documents.format import MOST_BYTES

        if self._store is None:
            return read_bounded(self._file, MOST_BYTES, "the record")
        return str(self._store.get(_KEY) or "").encode()

    def write(self, record: RemoteOperation) -> None:
        """Replaces the record; raises ``DescriptorError``, and what Airflow's store raises."""
        from airflow_hive_opt.documents.remote_operation import REMOTE_OPERATION

        if self._store is None:
            REMOTE_OPERATION.write(record, self._file)
        else:
            self._store.set(_KEY, REMOTE_OPERATION.text(record))

    def replace(self, found: RemoteOperation, by: RemoteOperation) -> None:
        """Replaces the record if it is still that of the operation ``found``."""
        now = self.read()
        if now is not None and now.id == found.id:
            self.write(by)

    def forget(self, found: RemoteOperation) -> None:
        """Deletes the record if it is still that of this operation."""
        now = self.read()
        if now is not None and now.id == found.id:
            self.delete()

    def delete(self) -> None:
        """Deletes the record."""
        if self._store is None:
            remove(self._file)
        else:
            self._store.delete(_KEY)


def _cause_in(data: bytes) -> str | None:
    """The cause in a record of any version of this package."""
    try:
        cause = json.loads(data)["cause"]
    except (ValueError, TypeError, KeyError):
        return None
    return cause if isinstance(cause, str) else None
