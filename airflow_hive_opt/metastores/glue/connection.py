"""Calls of AWS Glue with boto3: retries, counted calls, and errors in one line."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any, Optional, TypeVar

from airflow_hive_opt.metastores.metastore import MetastoreError

log = logging.getLogger(__name__)

AT_ONCE = 10
"""Calls at the same time; Glue divides a table into at most so many segments."""
_ATTEMPTS = 8  # with botocore's back-off, 20 s at most between two
_PAUSE = 0.2  # seconds, times the number of attempts, after an answer that was cut off
_REFUSALS = ("InvalidInputException", "InvalidStateException", "ValidationException")
_EXPIRED = ("ExpiredTokenException", "ExpiredToken", "RequestExpired")
_DENIED = ("AccessDeniedException", "AccessDenied")
_UNKNOWN_KEY = (
    "UnrecognizedClientException",
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "IncompleteSignatureException",
)
_LONGEST_MESSAGE = 500  # characters

_In = TypeVar("_In")
_Out = TypeVar("_Out")


class NoSuchEntity(MetastoreError):
    """The database, table or partition does not exist."""


class RequestRefused(MetastoreError):
    """Glue can't evaluate the request, for example an expression on values of another type."""


@dataclass(frozen=True)
class GlueSettings:
    """Where the Data Catalog is, without credentials.

    boto3 finds a setting that is ``None``. Without ``catalog_id`` it is the account's own catalog.
    """

    region: Optional[str] = None
    endpoint: Optional[str] = None
    catalog_id: Optional[str] = None


class GlueConnection:
    """A client of the Data Catalog, which several threads may use.

    ``session`` is a ``boto3.session.Session`` with credentials; by default boto3's own chain finds
    them. ``timeout`` limits a single read, in seconds. Throttled calls, server errors and broken
    connections are repeated, eight attempts in total. ``calls`` counts every attempt.
    Raises :class:`~airflow_hive_opt.metastores.metastore.MetastoreError` without boto3 or a region.
    """

    def __init__(
        self, settings: GlueSettings | None = None, session: Any = None, timeout: float = 60
    ) -> None:
        self._settings = settings or GlueSettings()
        self._lock = Lock()
        self.calls = 0
        self._client = _client(self._settings, session, timeout)
        self._client.meta.events.register("before-send.glue", self._count)

    @property
    def where(self) -> str:
        """The Data Catalog for messages: its region and, if it is another account's, its ID."""
        catalog = self._settings.catalog_id
        place = f"AWS Glue in {self._client.meta.region_name}"
        return f"{place}, catalog {catalog}" if catalog else place

    def call(self, method: str, field: str, **arguments: Any) -> dict[str, Any]:
        """The answer of a method of boto3's client; every complete answer has ``field``.

        boto3 reads an answer that was cut off as one without fields, so this repeats such a call.
        Raises :class:`NoSuchEntity`, :class:`RequestRefused`, and
        :class:`~airflow_hive_opt.metastores.metastore.MetastoreError` for all other failures.
        """
        if self._settings.catalog_id:
            arguments["CatalogId"] = self._settings.catalog_id
        for attempt in range(_ATTEMPTS):
            answer = self._answer(method, arguments)
            if field in answer:
                return answer
            log.warning("%s: the answer to %s was cut off", self.where, _asked(method, arguments))
            time.sleep(_PAUSE * attempt)
        raise MetastoreError(
            f"{self.where}: the answer to {_asked(method, arguments)} is cut off each time. Check "
            "the network and the endpoint"
        )

    def close(self) -> None:
        """Closes the client's connections; the next call opens others."""
        self._client.close()

    def _answer(self, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        try:
            answer: dict[str, Any] = getattr(self._client, method)(**arguments)
        except ClientError as error:
            raise self._failure(method, arguments, error.response.get("Error", {})) from None
        except (BotoCoreError, ResponseParserError) as error:
            raise MetastoreError(
                f"no answer from {self.where} to {_asked(method, arguments)}: {_line(error)}. "
                "Check the network, the endpoint and the credentials"
            ) from error
        return answer

    def _count(self, **_: object) -> None:
        with self._lock:
            self.calls += 1

    def _failure(
        self, method: str, arguments: dict[str, Any], error: dict[str, Any]
    ) -> MetastoreError:
        code = str(error.get("Code", ""))
        asked = f"{self.where}: {_asked(method, arguments)}: {code}"
        if code in _UNKNOWN_KEY:  # the message may repeat the request's headers
            return MetastoreError(f"{asked}. Check the access key, its secret and its token")
        message = " ".join(str(error.get("Message", "")).split())[:_LONGEST_MESSAGE]
        what = f"{asked}: {message}"
        if code == "EntityNotFoundException":
            return NoSuchEntity(what)
        if code in _REFUSALS:
            return RequestRefused(what)
        if code in _EXPIRED:
            return MetastoreError(f"{what}. The credentials have expired: renew them")
        if code in _DENIED:
            return MetastoreError(
                f"{what}. The role needs glue:GetDatabase, glue:GetTable, glue:GetPartitions and "
                "glue:BatchGetPartition on catalog, databases (also default) and tables"
            )
        return MetastoreError(what)


def together(function: Callable[[_In], _Out], inputs: Sequence[_In]) -> list[_Out]:
    """Calls ``function`` for each input, up to ten at once, and returns the results in order.

    The first error cancels the calls that have not started.
    """
    if len(inputs) < 2:
        return [function(one) for one in inputs]
    with ThreadPoolExecutor(min(AT_ONCE, len(inputs)), "glue") as threads:
        running = [threads.submit(function, one) for one in inputs]
        try:
            return [one.result() for one in running]
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise


def _client(settings: GlueSettings, session: Any, timeout: float) -> Any:
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError:
        raise MetastoreError(
            "AWS Glue needs boto3, which is not installed: pip install 'airflow-hive-opt[glue]'"
        ) from None
    config = Config(
        retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
        connect_timeout=min(10, timeout),
        read_timeout=timeout,
        max_pool_connections=AT_ONCE,
    )
    try:
        session = session or boto3.session.Session()
        return session.client(
            "glue",
            region_name=settings.region or session.region_name or _region_of_this_machine(),
            endpoint_url=settings.endpoint,
            config=config,
        )
    except (BotoCoreError, ValueError) as error:
        raise MetastoreError(
            f"AWS Glue can't be called: {_line(error)}. Name the region in the connection's extra "
            "(region_name), in aws.region of Spark's settings, or in AWS_REGION"
        ) from None


def _region_of_this_machine() -> str | None:
    """The region of an EC2 instance, which AWS's own clients take too; else ``None``."""
    from botocore.utils import InstanceMetadataRegionFetcher

    fetcher = InstanceMetadataRegionFetcher(timeout=1, num_attempts=1, env=os.environ)
    region: str | None = fetcher.retrieve_region()
    return region


def _asked(method: str, arguments: dict[str, Any]) -> str:
    """The API's name of a method, and the table."""
    name = "".join(word.title() for word in method.split("_"))
    table = arguments.get("TableName") or arguments.get("Name")
    return f"{name} of {arguments.get('DatabaseName')}.{table}"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
