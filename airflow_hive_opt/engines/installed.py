"""Whether an engine's library is installed, and which release."""

from __future__ import annotations

import re
from importlib.metadata import version
from importlib.util import find_spec

from airflow_hive_opt.engines.scan import EngineError

# The extra of the package that installs a library.
_EXTRAS = {
    "duckdb": "worker",
    "pyarrow": "worker",
    "polars": "polars",
    "pyiceberg": "iceberg",
    "deltalake": "delta",
    "datafusion": "datafusion",
}


def check_installed(*libraries: str) -> None:
    """Raises :class:`~airflow_hive_opt.engines.scan.EngineError` if one of them is missing."""
    for name in libraries:
        if find_spec(name) is None:
            raise EngineError(
                f"{name} is not installed: pip install 'airflow-hive-opt[{_EXTRAS[name]}]'"
            )


def is_before(library: str, *release: int) -> bool:
    """Whether an installed library is older than a release, given by its first numbers."""
    numbers = map(int, re.findall(r"\d+", version(library)))
    return tuple(numbers)[: len(release)] < release
