"""Which process of a Spark Connect server answers, and whether an earlier one runs no more.

A server that was started again does not know what its process before it has done. But that process
has ended, since another one listens at its port. This does not hold if the one that answers is
another server behind the same load balancer: that one has another host or another port.
"""

from __future__ import annotations

import logging
import time
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from airflow_hive_opt.documents.remote_operation import ServerProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_DEFAULT_PORT = "15002"
# Loopback, and the default network of Docker: two machines may have the same address there.
_OF_ANY_MACHINE = tuple(map(ip_network, ("127.0.0.0/8", "::1/128", "172.17.0.0/16")))
_TO_STOP = 30.0  # seconds: Hadoop's limit for the end of a JVM, which closes its port before


def process_of(session: SparkSession, server: str) -> ServerProcess:
    """The process that has the session; ``server`` is its host and port in the connection.

    What a server does not tell stays empty.
    """
    from pyspark.errors import PySparkException

    def told(name: str, default: str = "") -> str:
        try:
            return session.conf.get(name, default) or ""
        except PySparkException as error:  # a managed server may refuse it
            log.debug("the server does not tell %s: %s", name, error)
            return ""

    host = told("spark.driver.host")
    port = told("spark.connect.grpc.binding.port", _DEFAULT_PORT)
    is_one_machine = host and (not _is_of_any(host) or _is_of_any(server.rpartition(":")[0]))
    place = f"{host}:{port}" if is_one_machine and port not in ("", "0") else ""
    return ServerProcess(told("spark.app.id"), place)


def has_ended(before: ServerProcess, session: SparkSession, server: str) -> bool:
    """Whether the process ``before`` has ended, and that of the session has its place.

    Waits until ``before`` must have ended too if it was only told to stop. Raises Spark's errors.
    """
    if not before.is_replaced_by(process_of(session, server)):
        return False
    ((now,),) = session.sql("SELECT unix_millis(current_timestamp())").collect()
    seconds = (now - int(session.conf.get("spark.app.startTime", "0") or 0)) / 1000
    if (left := _TO_STOP - seconds) > 0:
        log.info("the server %s was started again: waiting until its old process has ended", server)
        time.sleep(min(left, _TO_STOP))
    return True


def _is_of_any(host: str) -> bool:
    """Whether several machines may have this host.

    >>> _is_of_any("localhost"), _is_of_any("[::1]"), _is_of_any("172.17.0.2")
    (True, True, True)
    >>> _is_of_any("10.0.0.5"), _is_of_any("spark.example.org")
    (False, False)
    """
    if host == "localhost":
        return True
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:  # a name
        return False
    return any(address in network for network in _OF_ANY_MACHINE)
