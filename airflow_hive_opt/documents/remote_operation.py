"""A statement that writes on a Spark Connect server, for the attempt after the one that began it.

The server goes on with a statement whose client has died. The next attempt finds it by this record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from airflow_hive_opt.documents.format import Format
from airflow_hive_opt.documents.job import Outcome


@dataclass(frozen=True)
class OperationId:
    """The IDs by which a server knows an operation.

    ``server_session`` is the server's own ID of the session, which is another one after the server
    has been started again, although the session's ID stays.
    """

    user: str
    session: str
    operation: str
    server_session: str


@dataclass(frozen=True)
class ServerProcess:
    """A process of a server.

    ``started`` is when its Spark has started, in milliseconds since 1970 by its own clock; 0 if
    unknown. ``address`` is the IP address and the port at which it listens; it is empty if the
    connection may lead to another server.
    """

    started: int = 0
    address: str = ""

    def is_replaced_by(self, other: ServerProcess) -> bool:
        """Whether ``other`` is another process at the same address.

        >>> old = ServerProcess(1_795_942_119_950, "10.0.0.5:15002")
        >>> old.is_replaced_by(ServerProcess(1_795_942_134_229, "10.0.0.5:15002"))
        True
        >>> old.is_replaced_by(ServerProcess(1_795_942_134_229, "10.0.0.6:15002"))
        False
        """
        if not (self.started and other.started and self.address):
            return False
        return self.address == other.address and self.started != other.started


@dataclass(frozen=True)
class OverwrittenPartition:
    """A partition before an operation that replaces it if its query returns rows.

    - ``partition`` is its table and values in SQL, and ``table_folder`` the table's folder. The
      names of the operation's files have ``basename`` in them, and no other operation's have.
    - If the query returns no row, all files of the partition's ``folder`` stay, and the statement
      ``emptied_by`` still has to run. ``files`` is a digest of them, and ``newest`` is when the
      newest was written, in milliseconds since 1970; without files they are empty and 0.
    """

    partition: str
    table_folder: str
    basename: str
    folder: str
    files: str
    newest: int
    emptied_by: str


@dataclass(frozen=True)
class RemoteOperation:
    """An operation that has begun on a server, or is about to.

    - ``server`` is the server's host and port in the connection, ``process`` the process that was
      there, and ``attempt`` the number of the try that has begun the operation.
    - ``began`` is when, in seconds since 1970, by this attempt's clock.
    - ``work`` is the digest of the attempt's job, and ``cause`` what a retry has in common with the
      attempt before it, but a task that somebody has cleared has not. Records of all versions have
      ``cause``.
    - ``outcome`` is that of the attempt if the operation succeeds; ``has_succeeded`` says that it
      has, and ``may_have_written`` that it runs no more and may have written.
    - ``before`` is what has to be looked at after a success.
    """

    server: str
    id: OperationId
    attempt: int
    began: float
    work: str
    cause: str
    outcome: Outcome
    process: ServerProcess
    has_succeeded: bool = False
    may_have_written: bool = False
    before: Optional[OverwrittenPartition] = None

    @property
    def has_ended(self) -> bool:
        """Whether the record says that the operation runs no more."""
        return self.has_succeeded or self.may_have_written


REMOTE_OPERATION = Format("remote operation", 8, RemoteOperation)
