"""Whether a service is well, for the containers' health checks: exit code 0 if so.

    python healthy.py port 9083              something accepts connections
    python healthy.py airflow scheduler ...  the API server says so of each part

The API server is that of AIRFLOW__CORE__EXECUTION_API_SERVER_URL.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import urllib.request
from urllib.parse import urljoin


def main() -> int:
    """See the module."""
    kind, *names = sys.argv[1:]
    try:
        if kind == "port":
            socket.create_connection((socket.gethostname(), int(names[0])), timeout=5).close()
            return 0
        server = os.environ["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"]
        address = urljoin(server, "/api/v2/monitor/health")
        with urllib.request.urlopen(address, timeout=5) as answer:  # noqa: S310 - our own
            found = json.load(answer)
    except OSError as error:
        print(error)
        return 1
    ill = [name for name in names if found[name]["status"] != "healthy"]
    print(*ill)
    return len(ill)


if __name__ == "__main__":
    sys.exit(main())
