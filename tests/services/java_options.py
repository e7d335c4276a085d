"""Options of the JVMs that live for minutes."""

from __future__ import annotations

# The best compiler gains nothing there; without it Java keeps 48 MB for code, which is too little.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
