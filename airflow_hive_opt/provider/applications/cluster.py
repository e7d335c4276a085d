"""What a cluster says of an application that it runs, asked over HTTP without blocking a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol
from weakref import WeakKeyDictionary

import httpx

_SECONDS = httpx.Timeout(20.0, connect=10.0, pool=None)
_NOT_CONNECTED = (httpx.ConnectError, httpx.ConnectTimeout)
_LONGEST = 2000  # characters of a server's own words
# One client for all triggers of a loop: each client would read the certificates again, which takes
# tens of milliseconds. A cluster that does not answer must not use up the connections to others.
_CLIENTS: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()


class NoAnswer(Exception):
    """The cluster can't be asked, or does not say how the application is."""


class NotReached(NoAnswer):
    """There is no connection to the server, so it can't have got the request."""


class NotKnown(Exception):
    """The cluster answers, and does not know the application."""


@dataclass(frozen=True)
class State:
    """How an application is: ``words`` for the log, ``ended`` once it does not run any more."""

    words: str
    ended: Literal["succeeded", "failed"] | None = None


class Cluster(Protocol):
    """A cluster that runs applications in cluster mode; its ``addresses`` are URLs."""

    kind: ClassVar[str]
    forgets: ClassVar[bool]
    """Whether it may not know an application that runs, for a while after its own restart."""

    @property
    def addresses(self) -> Sequence[str]:
        """The servers that can be asked."""

    async def state(self, id_: str) -> State:
        """How the application is; raises :class:`NoAnswer` and :class:`NotKnown`."""

    async def kill(self, id_: str) -> None:
        """Asks the cluster to stop the application; raises :class:`NoAnswer`."""


async def ask(method: str, url: str, body: Any = None) -> tuple[int, Any]:
    """The status code and the document of a JSON answer; raises :class:`NoAnswer`.

    A document that is no JSON object is ``{}``.
    """
    try:
        answer = await _client().request(method, url, json=body)
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        kind = NotReached if isinstance(error, _NOT_CONNECTED) else NoAnswer
        raise kind(f"{_without_login(url)}: {error or type(error).__name__}") from None
    try:
        document = answer.json()
    except ValueError:
        document = {}
    if answer.status_code >= 500:
        raise NoAnswer(f"{_without_login(url)} answers with HTTP {answer.status_code}")
    return answer.status_code, document if isinstance(document, dict) else {}


def short(words: object) -> str:
    """A server's own words, for a message."""
    return str(words or "").strip()[:_LONGEST]


async def close() -> None:
    """Closes the connections of this loop."""
    if (client := _CLIENTS.pop(asyncio.get_running_loop(), None)) is not None:
        await client.aclose()


def _client() -> httpx.AsyncClient:
    loop = asyncio.get_running_loop()
    if loop not in _CLIENTS:
        _CLIENTS[loop] = httpx.AsyncClient(
            timeout=_SECONDS,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            follow_redirects=True,
        )
    return _CLIENTS[loop]


def _without_login(url: str) -> str:
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
