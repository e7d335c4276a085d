"""Partition names as the metastore writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from airflow_hive_opt.runtime.partitions import DEFAULT_PARTITION

# Hive's FileUtils.escapePathName.
_ESCAPED = re.compile(r"""[\x01-\x1f\x7f"#%'*/:=?\\{[\]^]""")


def partition_name(columns: Sequence[str], values: Sequence[str | None]) -> str:
    """The name of a partition; what :func:`~airflow_hive_opt.runtime.partitions.parse_name` reads.

    >>> partition_name(("ds", "n"), ("a/b c", None))
    'ds=a%2Fb c/n=__HIVE_DEFAULT_PARTITION__'
    """
    return "/".join(
        f"{_escape(column)}={_escape(value) if value else DEFAULT_PARTITION}"
        for column, value in zip(columns, values, strict=True)
    )


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)
