"""Which servers of a test run are started once, and a scheduler of xdist that sees to it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

# Fixtures, the one with the longest tests first.
SERVERS = ("connect_server", "metastore_service", "web")


@cache
def server_of(file: Path) -> str | None:
    """The server that the tests of a file need. If they need several, the first of them."""
    words = set(re.findall(r"\w+", file.read_text()))
    return next((server for server in SERVERS if server in words), None)


class ByServer(LoadFileScheduling):
    """Runs the tests of a file in the same process, and all files that need the same server."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return server_of(self.config.rootpath / file) or file
