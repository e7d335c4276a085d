"""Fetches jars that no wheel has, by the coordinates and checksums of ``tests/jars.lock``.

python -m tests.services.jars SET ...     fetches the sets, and prints where their jars are
python -m tests.services.jars --lock [SET ...]      writes the sets of ``tests/jars.toml``, or all,
                                                    to the lock file

Maven fetches them, as it is set up on the machine, into ``$XDG_CACHE_HOME/airflow-hive-opt/jars``.
A jar with another checksum than the locked one is not used.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_TESTS = Path(__file__).parents[1]
SETS, LOCK = _TESTS / "jars.toml", _TESTS / "jars.lock"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "airflow-hive-opt", "jars")
_MAVEN = ("mvn", "--batch-mode", "--quiet", f"-Dmaven.repo.local={CACHE.with_name('maven')}")
_DEPENDENCY = "org.apache.maven.plugins:maven-dependency-plugin:3.9.0"
_LISTED = re.compile(
    r"^ +([\w.-]+):([\w.-]+):jar:(?:([\w.-]+):)?([\w.-]+):(?:compile|runtime)\b", re.M
)


class JarError(Exception):
    """A jar can't be had; the message says which, and why."""


@dataclass(frozen=True, order=True)
class Jar:
    """A jar by its coordinates, ``group:artifact:version`` or with ``:classifier``."""

    coordinates: str

    @property
    def name(self) -> str:
        """The name of its file."""
        _, artifact, *rest = self.coordinates.split(":")
        return "-".join((artifact, *rest)) + ".jar"

    @property
    def item(self) -> str:
        """The jar for Maven's plugin."""
        group, artifact, version, *rest = self.coordinates.split(":")
        parts = {"groupId": group, "artifactId": artifact, "version": version}
        parts |= {"classifier": rest[0]} if rest else {}
        inner = "".join(f"<{name}>{text}</{name}>" for name, text in parts.items())
        return f"<artifactItem>{inner}</artifactItem>"


def jars(name: str) -> list[Path]:
    """The jars of the set ``name``; fetches those that the cache does not have.

    Raises ``JarError`` if the lock file has no such set, or if a jar can't be fetched.
    """
    locked = _locked(name)
    missing = [jar for jar, digest in locked.items() if not _place(jar, digest).exists()]
    if missing:
        print(f"==> fetching {len(missing)} jars of {name}", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            _fetch(missing, Path(folder))
            for jar in missing:
                _keep(Path(folder, jar.name), jar, locked[jar])
    return [_place(jar, digest) for jar, digest in locked.items()]


def is_locked(name: str) -> bool:
    """Whether the lock file has the set."""
    return any(line.split()[:1] == [name] for line in LOCK.read_text().splitlines())


def _locked(name: str) -> dict[Jar, str]:
    lines = [line.split() for line in LOCK.read_text().splitlines() if not line.startswith("#")]
    found = {Jar(coordinates): digest for set_, coordinates, digest in lines if set_ == name}
    if not found:
        raise JarError(f"{LOCK.name} has no set {name}")
    return found


def _place(jar: Jar, digest: str) -> Path:
    return CACHE / digest[:16] / jar.name


def _keep(file: Path, jar: Jar, digest: str) -> None:
    """Moves a fetched jar to its place, whole or not at all."""
    if (its := _digest(file)) != digest:
        raise JarError(f"{jar.coordinates} has the checksum {its}, but {LOCK.name} has {digest}")
    place = _place(jar, digest)
    place.parent.mkdir(parents=True, exist_ok=True)
    unfinished = place.with_name(f"{place.name}.{os.getpid()}")
    shutil.move(file, unfinished)
    unfinished.replace(place)


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _fetch(wanted: Iterable[Jar], folder: Path) -> None:
    items = "".join(jar.item for jar in wanted)
    configuration = (
        f"<artifactItems>{items}</artifactItems><outputDirectory>{folder}</outputDirectory>"
    )
    _maven(folder, f"{_DEPENDENCY}:copy", configuration)


def _maven(folder: Path, goal: str, configuration: str = "", dependencies: str = "") -> None:
    if shutil.which("mvn") is None:
        raise JarError("these tests need Maven (mvn), which fetches the jars")
    group, artifact, version = goal.split(":")[:3]
    file = folder / "pom.xml"
    file.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>t</groupId><artifactId>t</artifactId>"
        f"<version>1</version>{dependencies}<build><plugins><plugin><groupId>{group}</groupId>"
        f"<artifactId>{artifact}</artifactId><version>{version}</version>"
        f"<configuration>{configuration}</configuration></plugin></plugins></build></project>"
    )
    command = [*_MAVEN, "-f", str(file), goal]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise JarError(f"Maven can't fetch the jars:\n{(done.stdout + done.stderr)[-2_000:]}")


def lock(names: Sequence[str] = ()) -> None:
    """Writes the lock file: each set's jars with their checksums, in their order.

    If ``names`` are given, the other sets stay as they are.
    """
    import tomllib

    before = LOCK.read_text().splitlines()
    lines = ["# set, coordinates, SHA-256; written by make lock-jars from jars.toml"]
    for name, set_ in tomllib.loads(SETS.read_text()).items():
        if names and name not in names:
            lines += [line for line in before if line.split()[0] == name]
            continue
        wanted = [Jar(coordinates) for coordinates in set_.get("jars", ())]
        wanted += _closure(set_["closure"], set_.get("without", ())) if "closure" in set_ else []
        with tempfile.TemporaryDirectory() as folder:
            _fetch(wanted, Path(folder))
            for jar in wanted:
                digest = _digest(file := Path(folder, jar.name))
                lines.append(f"{name} {jar.coordinates} {digest}")
                _keep(file, jar, digest)
        print(f"{name}: {len(wanted)} jars")
    LOCK.write_text("\n".join(lines) + "\n")


def _closure(roots: Iterable[str], without: Iterable[str]) -> list[Jar]:
    """The jars and what they require at run time, less ``without``, each ``group:artifact``."""
    one = "<exclusion><groupId>{}</groupId><artifactId>{}</artifactId></exclusion>"
    excluded = "".join(one.format(*each.split(":")) for each in without)
    dependencies = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
        "<exclusions>{}</exclusions></dependency>".format(*root.split(":"), excluded)
        for root in roots
    )
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "list")
        _maven(
            Path(folder),
            f"{_DEPENDENCY}:list",
            f"<outputFile>{output}</outputFile><includeScope>runtime</includeScope>",
            f"<dependencies>{dependencies}</dependencies>",
        )
        listed = _LISTED.findall(re.sub(r"\x1b\[[0-9;]*m", "", output.read_text()))
    return sorted(
        Jar(":".join((group, artifact, version, *([kind] if kind else ()))))
        for group, artifact, kind, version in listed
    )


def main(arguments: list[str]) -> int:
    """The command; returns the exit code."""
    try:
        if arguments[:1] == ["--lock"]:
            lock(arguments[1:])
        else:
            for name in arguments:
                print("\n".join(map(str, jars(name))))
    except JarError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
