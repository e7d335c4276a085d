"""Where the record of a statement on a Spark Connect server is: each attempt of its task finds it.

It is in Airflow's store of the task's state, and before Airflow 3.3 in a file, in the folder of the
task's attempts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_hive_opt.documents.storage import DescriptorError, NothingThereError, remove
from airflow_hive_opt.provider.airflow_compat import AirflowException
from airflow_hive_opt.provider.without_stack import without_stack

if TYPE_CHECKING:
    from airflow_hive_opt.documents.remote_operation import RemoteOperation
    from airflow_hive_opt.documents.storage import StoragePath
    from airflow_hive_opt.provider.airflow_compat import Context

_KEY = "spark_connect_operation"
_FILE = "operation.json"


class OperationRecord:
    """The record of one task instance; ``path`` is an attempt's."""

    def __init__(self, context: Context, path: StoragePath) -> None:
        self._store = context.get("task_state_store")
        self._file = path.with_name(_FILE)

    def read(self) -> RemoteOperation | None:
        """The record, if there is one; raises ``AirflowException`` if it can't be read."""
        from airflow_hive_opt.documents.remote_operation import REMOTE_OPERATION

        try:
            if self._store is None:
                return REMOTE_OPERATION.read(self._file)
            text = self._store.get(_KEY)
            return REMOTE_OPERATION.decode(str(text).encode()) if text else None
        except NothingThereError:
            return None
        except DescriptorError as error:
            message = f"nothing shows whether the statement of an earlier try has ended: {error}"
            raise without_stack(AirflowException(message)) from None

    def write(self, record: RemoteOperation) -> None:
        """Replaces the record; raises ``DescriptorError``, and what Airflow's store raises."""
        from airflow_hive_opt.documents.remote_operation import REMOTE_OPERATION

        if self._store is None:
            REMOTE_OPERATION.write(record, self._file)
        else:
            self._store.set(_KEY, REMOTE_OPERATION.text(record))

    def forget(self, found: RemoteOperation) -> None:
        """Deletes the record if it is still that of this operation."""
        now = self.read()
        if now is None or now.id != found.id:
            return
        if self._store is None:
            remove(self._file)
        else:
            self._store.delete(_KEY)
