"""Classes of the JVM by their full names.

``jvm.org.apache.spark.X`` asks the JVM about each part of the name, every time. That takes longer
than the call itself, so what runs for every table of a statement does without it.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass


def java_class(jvm: Any, name: str) -> Any:
    """The class ``name`` in the JVM of a session.

    Using a class that is missing raises ``Py4JError``.
    """
    return JavaClass(name, jvm._gateway_client)
