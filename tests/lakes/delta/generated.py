"""A table with a generated partition column, which Spark's SQL can't make."""

from __future__ import annotations


def created(session, name: str) -> None:
    """Creates the table ``name (id, at, day)``, whose ``day`` is that of ``at``."""
    jvm = session._jvm
    tables = jvm.io.delta.tables.DeltaTable
    builder = tables.createOrReplace(session._jsparkSession).tableName(name)
    column = tables.columnBuilder(session._jsparkSession, "day").dataType("date")
    builder = builder.addColumn("id", "bigint").addColumn("at", "timestamp")
    builder = builder.addColumn(column.generatedAlwaysAs("CAST(at AS date)").build())
    array = session.sparkContext._gateway.new_array(jvm.java.lang.String, 1)
    array[0] = "day"
    builder.partitionedBy(array).execute()
