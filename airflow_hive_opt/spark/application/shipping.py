"""Packs the files that a driver needs, without Airflow, into a zip for ``--py-files``.

Cluster machines have PySpark. The package works only with the releases of sqlglot that
``pyproject.toml`` names, so the shipped sqlglot takes precedence over the cluster's. The cluster's
file system libraries take precedence over the shipped ones, because they must match its storage
drivers. The same holds for the metastore's Thrift client.
"""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

_OWN = (
    *("statement", "pruning", "rewriting", "hive", "metastores", "documents"),
    *("key_index", "restriction", "local_task", "explain", "spark"),
)
_IN_FRONT = ("sqlglot",)
_BEHIND = ("fsspec", "upath", "pymetastore", "thrift")
_OF_NEWER_UPATH = "pathlib_abc"
_FALLBACK = "fallback"
# Any Python 3 can parse this script, so it can report a version that is too old.
_MAIN = f'''\
"""Runs a job of airflow-hive-opt: spark-submit --py-files {{zip}} {{this file}} JOB_URI"""

import sys
from pathlib import Path

python = sys.version.split()[0]
if sys.version_info < (3, 9):
    sys.exit("airflow-hive-opt needs Python 3.9 on the cluster, and this is " + python)

import pyspark  # noqa: E402

spark = pyspark.__version__
if tuple(map(int, spark.split(".")[:2])) < (3, 5):
    sys.exit("airflow-hive-opt needs Spark 3.5 on the cluster, and this is " + spark)

import airflow_hive_opt  # noqa: E402

sys.path.append(str(Path(airflow_hive_opt.__file__).parents[1] / "{_FALLBACK}"))

from airflow_hive_opt.spark.application.submitted import main  # noqa: E402

sys.exit(main())
'''


def ship(folder: Path) -> tuple[Path, Path]:
    """Writes ``main.py`` and ``airflow_hive_opt.zip`` to ``folder``; returns their paths."""
    main, package = folder / "main.py", folder / "airflow_hive_opt.zip"
    main.write_text(_MAIN)
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as archive:
        own = Path(__file__).parents[2]
        archive.write(own / "__init__.py", "airflow_hive_opt/__init__.py")
        for name in _OWN:
            _add(archive, own / name, f"airflow_hive_opt/{name}")
        for name in _IN_FRONT:
            _add(archive, _folder(name), name)
        newer = [_OF_NEWER_UPATH] if importlib.util.find_spec(_OF_NEWER_UPATH) else []
        for name in (*_BEHIND, *newer):
            _add(archive, _folder(name), f"{_FALLBACK}/{name}")
    return main, package


def _folder(name: str) -> Path:
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(f"{name} is not installed, so it can't be shipped")
    return Path(found.origin).parent


def _add(archive: zipfile.ZipFile, folder: Path, name: str) -> None:
    for path in sorted(folder.rglob("*.py")):
        archive.write(path, f"{name}/{path.relative_to(folder)}")
