"""The table formats that keep their own list of files, by the names that Spark gives as provider.

The metastore may have partitions of such a table, but Spark does not read them: the table's own
list may have files of further partitions.
"""

from __future__ import annotations

ICEBERG = "iceberg"
DELTA = "delta"
HUDI = "hudi"

LAKE_FORMATS = (ICEBERG, DELTA, HUDI)
UNTESTED_FORMATS = (DELTA, HUDI)
"""The formats against which no test has run. Keys restrict their tables only if asked to."""
