"""A table of two partition columns, and a plain twin of it, for tests of writes."""

from __future__ import annotations

from pathlib import Path


def make_twins(session, database: str, columns: str, how: str) -> Path:
    """Makes ``result`` and ``plain`` anew, partitioned by ``ds`` and ``n``.

    ``columns`` are the others, and ``how`` is ``USING ...`` or ``STORED AS ...``. Returns the
    folder of ``result``.
    """
    for name in ("result", "plain"):
        session.sql(f"DROP TABLE IF EXISTS {database}.{name}")
        if how.startswith("USING"):
            layout = f"({columns}, ds STRING, n INT) {how} PARTITIONED BY (ds, n)"
        else:
            layout = f"({columns}) PARTITIONED BY (ds STRING, n INT) {how}"
        session.sql(f"CREATE TABLE {database}.{name} {layout}")
    described = session.sql(f"DESCRIBE FORMATTED {database}.result").where("col_name = 'Location'")
    return Path(described.collect()[0]["data_type"].removeprefix("file:"))
