"""A runtime of Apache Iceberg for Spark 3.5, made of wheels alone, for tests only.

The wheel ``snowpark-connect-deps-iceberg`` has Iceberg's runtime jar without its relocated Jackson.
Spark brings Jackson itself. Its three jars are relocated here, by replacing the package's name in
the constant pool of each class.
"""

from __future__ import annotations

import re
import struct
import zipfile
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "snowpark_connect_deps_iceberg"
_OLD, _NEW = b"com/fasterxml/jackson", b"org/apache/iceberg/shaded/com/fasterxml/jackson"
_UTF8, _TWO_ENTRIES = 1, (5, 6)
# The lengths of the other constants, by their tag; see the Java Virtual Machine Specification, 4.4.
_LENGTHS = {
    **dict.fromkeys((7, 8, 16, 19, 20), 2),
    15: 3,
    **dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4),
    **dict.fromkeys((5, 6), 8),
}


def is_installed() -> bool:
    """Whether the wheel is installed beside a PySpark 3.5."""
    if find_spec(PACKAGE) is None:
        return False
    from pyspark.version import __version__

    return __version__.startswith("3.5.")


def iceberg_jars(folder: Path) -> str:
    """The jars, joined by commas as ``spark.jars`` expects; ``folder`` takes the relocated ones."""
    (runtime,) = _jars(PACKAGE).glob("iceberg-spark-runtime-3.5_2.12-*.jar")
    found = [runtime]
    for part in ("core", "databind", "annotations"):
        jars = _jars("pyspark").glob(f"jackson-{part}-*.jar")
        (jar,) = (jar for jar in jars if re.fullmatch(rf"jackson-{part}-[\d.]+\.jar", jar.name))
        found.append(_relocated_jar(jar, folder))
    return ",".join(map(str, found))


def _jars(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "jars"


def _relocated_jar(jar: Path, folder: Path) -> Path:
    relocated = folder / f"iceberg-{jar.name}"
    with zipfile.ZipFile(jar) as old, zipfile.ZipFile(relocated, "w") as new:
        for name in old.namelist():
            if name.endswith(".class") and name.startswith(_OLD.decode()):
                place = name.replace(_OLD.decode(), _NEW.decode())
                new.writestr(place, _relocated_class(old.read(name)))
    return relocated


def _relocated_class(data: bytes) -> bytes:
    (count,) = struct.unpack_from(">H", data, 8)
    parts, at, index = [data[:10]], 10, 1
    while index < count:
        tag = data[at]
        if tag == _UTF8:
            (length,) = struct.unpack_from(">H", data, at + 1)
            text = data[at + 3 : at + 3 + length].replace(_OLD, _NEW)
            text = text.replace(_OLD.replace(b"/", b"."), _NEW.replace(b"/", b"."))
            parts.append(bytes([tag]) + struct.pack(">H", len(text)) + text)
            at += 3 + length
        else:
            parts.append(data[at : at + 1 + _LENGTHS[tag]])
            at += 1 + _LENGTHS[tag]
            index += tag in _TWO_ENTRIES
        index += 1
    return b"".join([*parts, data[at:]])
