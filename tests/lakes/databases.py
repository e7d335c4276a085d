"""Dropping a database with its tables and views.

Spark 4.1 and 4.2 can't do so with CASCADE and a metastore of Hive 2.3.
"""

from __future__ import annotations

from pyspark.errors import AnalysisException


def drop_database(session, name: str) -> None:
    """Drops the database and what is in it; raises ``AnalysisException`` if it is still there."""
    listed = session.sql(f"SHOW VIEWS IN {name}").collect()
    views = {row["viewName"] for row in listed if not row["isTemporary"]}
    for row in session.sql(f"SHOW TABLES IN {name}").collect():
        if not row["isTemporary"] and row["tableName"] not in views:
            session.sql(f"DROP TABLE {name}.`{row['tableName']}`")
    for view in views:
        session.sql(f"DROP VIEW {name}.`{view}`")
    try:
        session.sql(f"DROP DATABASE {name}")
    except AnalysisException:  # of these, after it has dropped it
        if session.catalog.databaseExists(name):
            raise
