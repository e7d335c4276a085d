"""A local file system whose directory listings take as long as an object store's.

Hadoop has no setting for that, so this is a class in a few lines of Scala. PySpark includes the
Scala compiler, so no Java compiler is needed. The class also counts listings.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = """\
package benchmark

import java.util.concurrent.atomic.AtomicLong
import org.apache.hadoop.fs.{FileStatus, LocalFileSystem, Path, RawLocalFileSystem}

object Listings {
  @volatile var milliseconds: Long = 0
  val count = new AtomicLong
  def setMilliseconds(value: Long): Unit = milliseconds = value
  def counted(): Long = count.get
}

class SlowRaw extends RawLocalFileSystem {
  override def listStatus(path: Path): Array[FileStatus] = {
    Listings.count.incrementAndGet()
    if (Listings.milliseconds > 0) Thread.sleep(Listings.milliseconds)
    super.listStatus(path)
  }
}

class SlowListing extends LocalFileSystem(new SlowRaw)
"""


def jar(folder: Path) -> Path:
    """The compiled class; compiles it to ``folder`` if necessary."""
    target, source = folder / "slow_listing.jar", folder / "SlowListing.scala"
    if target.exists() and source.read_text() == SOURCE:
        return target
    folder.mkdir(parents=True, exist_ok=True)
    source.write_text(SOURCE)
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    jars = str(Path(pyspark.__file__).parent / "jars" / "*")
    command = [java, "-cp", jars, "scala.tools.nsc.Main", "-usejavacp", "-nowarn"]
    subprocess.run([*command, "-d", str(target), str(source)], check=True)
    return target


def conf(folder: Path) -> dict[str, str]:
    """Spark's settings that replace the local file system by the class."""
    return {
        "spark.driver.extraClassPath": str(jar(folder)),
        "spark.hadoop.fs.file.impl": "benchmark.SlowListing",
    }


class Listings:
    """The slow file system of a session with the settings of :func:`conf`."""

    def __init__(self, session: SparkSession) -> None:
        self._java: Any = session._jvm.benchmark.Listings

    def take(self, milliseconds: int) -> None:
        """Adds ``milliseconds`` to each directory listing from now on."""
        self._java.setMilliseconds(milliseconds)

    def count(self) -> int:
        """The number of directories listed so far."""
        return int(self._java.counted())
