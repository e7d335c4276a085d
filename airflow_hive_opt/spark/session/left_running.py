"""A statement that goes on without the process that has begun it."""

from __future__ import annotations

from airflow_hive_opt.documents.remote_operation import OperationId


class LeftRunning(BaseException):
    """Nobody in this process waits any longer for the operation ``id``; its server goes on.

    It is no ``Exception``: it is not an error, and nobody who handles those may catch it.
    """

    def __init__(self, found: OperationId) -> None:
        super().__init__(f"the operation {found.operation} goes on")
        self.id = found
