"""Which process of a Spark Connect server answers, and whether an earlier one runs no more.

A server that was started again does not know what its process before it has done. But that process
has ended if another one has its address and port, which two processes can't have at once. Nothing
can be said behind a load balancer, a proxy or a tunnel: there another server may answer. So address
and port count only if the server itself names them as its own.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from airflow_hive_opt.documents.remote_operation import ServerProcess
from airflow_hive_opt.spark.session.connect import DEFAULT_PORT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_HOST, _STARTED = "spark.driver.host", "spark.app.startTime"
_PORT = "spark.connect.grpc.binding.port"
# Several machines may have the same one of these: Docker gives the last of them to its networks.
_NOT_OF_ONE_MACHINE = tuple(
    map(ip_network, ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"))
)
_TO_END = 30  # seconds: a process that was told to stop closes its port before it ends


def process_of(session: SparkSession, server: str) -> ServerProcess:
    """The process that has the session; ``server`` is its host and port in the connection.

    What it does not tell is left out.
    """
    try:
        return _told(session, server)
    except PySparkException as error:
        log.debug("the server does not tell when it was started: %s", error)
        return ServerProcess()


def has_ended(
    before: ServerProcess, session: SparkSession, server: str, check: Callable[[], None]
) -> bool:
    """Whether the process ``before`` has ended, because that of the session has its address.

    Then waits half a minute for the end of a process that was told to stop, and calls ``check``
    each second, which may raise an error. Raises Spark's errors.
    """
    if not before.is_replaced_by(_told(session, server)):
        return False
    log.info("the server %s was started again: waiting for the end of its old process", server)
    for _ in range(_TO_END):
        time.sleep(1)
        check()
    return True


def _told(session: SparkSession, server: str) -> ServerProcess:
    host, _, port = server.rpartition(":")
    address = address_of(host)
    if address is None or session.conf.get(_PORT, str(DEFAULT_PORT)) != port:
        return ServerProcess()
    if address_of(session.conf.get(_HOST, "") or "") != address:
        return ServerProcess()
    started = session.conf.get(_STARTED, "") or ""
    return ServerProcess(int(started) if started.isdecimal() else 0, f"{address}:{port}")


def address_of(host: str) -> str | None:
    """The one IPv4 address of a host, if no other machine has it.

    >>> address_of("10.0.0.5")
    '10.0.0.5'
    >>> address_of("localhost"), address_of("172.17.0.2"), address_of("")
    (None, None, None)
    """
    try:
        found = {str(each[4][0]) for each in socket.getaddrinfo(host, None, socket.AF_INET)}
    except (OSError, UnicodeError):  # it has none, or is no name
        return None
    if len(found) != 1 or not host:
        return None
    (address,) = found
    is_shared = any(ip_address(address) in network for network in _NOT_OF_ONE_MACHINE)
    return None if is_shared else address
