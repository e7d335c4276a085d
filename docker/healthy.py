"""Checks the health of a service for the containers. The exit code is 0 if it is healthy.

    python healthy.py port 9083              the port accepts connections
    python healthy.py airflow scheduler ...  the API server reports each component as healthy

AIRFLOW__CORE__EXECUTION_API_SERVER_URL has the address of the API server.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import urllib.request
from urllib.parse import urljoin


def main() -> int:
    """Runs the check that the arguments name."""
    kind, *names = sys.argv[1:]
    try:
        if kind == "port":
            socket.create_connection((socket.gethostname(), int(names[0])), timeout=5).close()
            return 0
        server = os.environ["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"]
        address = urljoin(server, "/api/v2/monitor/health")
        with urllib.request.urlopen(address, timeout=5) as answer:  # noqa: S310 - the address is configured
            found = json.load(answer)
    except OSError as error:
        print(error)
        return 1
    ill = [name for name in names if found[name]["status"] != "healthy"]
    print(*ill)
    return len(ill)


if __name__ == "__main__":
    sys.exit(main())
