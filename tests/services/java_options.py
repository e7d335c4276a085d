"""Options of the JVMs that live for minutes."""

from __future__ import annotations

import sys
from pathlib import Path

ARCHIVE = Path(sys.prefix, "share", "java", "spark.jsa")  # `make services` puts it there
"""Spark's classes as a JVM maps them; empty if this Java can't write them."""

# The best compiler gains nothing there; without it Java keeps 48 MB for code, which is too little.
WITHOUT_ARCHIVE = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
    # few of the objects live long, and Spark makes many classes
    " -XX:NewRatio=1 -XX:MetaspaceSize=256m"
    # Hadoop starts a process for the permissions of every file and folder
    " -Djdk.lang.Process.launchMechanism=VFORK"
)
SHORT_LIVED = WITHOUT_ARCHIVE
if ARCHIVE.exists() and ARCHIVE.stat().st_size:
    # a JVM with other jars ignores the archive, and need not say so
    SHORT_LIVED += f" -XX:SharedArchiveFile={ARCHIVE} -Xlog:cds=off -Xlog:cds+dynamic=off"
