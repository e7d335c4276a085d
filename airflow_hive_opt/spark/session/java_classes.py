"""Classes of the JVM by their full names.

``jvm.org.apache.spark.X`` asks the JVM about each part of the name, every time.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass


def java_class(jvm: Any, name: str) -> Any:
    """The class ``name`` of the JVM of a session; a class that is missing fails when it is used."""
    return JavaClass(name, jvm._gateway_client)
