"""Settings of Spark for tables of few rows, where planning and compiling are most of the time."""

from __future__ import annotations

from tests.services.java_options import SHORT_LIVED

SMALL_DATA = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Of a session: one stage without compiled code does what many do."""

LONG_LIVED = {
    **SMALL_DATA,
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    # With the default of 1g, Java collects all of its garbage again and again.
    "spark.driver.memory": "2g",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.sql.ui.retainedExecutions": "50",
}
"""Of a Spark with which hundreds of tests run. Nobody looks at the pages of Spark itself."""


def in_memory_metastore(name: str) -> dict[str, str]:
    """An embedded metastore that no other process asks and that need not survive."""
    url = f"jdbc:derby:memory:{name};create=true"
    return {"spark.hadoop.javax.jdo.option.ConnectionURL": url}
