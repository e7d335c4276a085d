"""The tables of the lakes' benchmarks in each format: how they are made, set back and counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
from airflow_hive_opt.spark.session.physical_operators import operators
from tests.lakes.delta.scanned import files_read
from tests.lakes.hudi.conftest import SETTINGS
from tests.lakes.jars import jars_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Ran = tuple[list[tuple[Any, ...]], Callable[[], Any]]
"""A statement's rows, and what gives its plan."""


class LakeTables(Protocol):
    """One format."""

    name: str
    database: str
    kinds: tuple[str, ...]
    """The statements to which keys are added, by their names in the benchmark."""
    about: str
    """What a reader of the results must know of the tables and counts."""

    def conf(self, folder: Path) -> dict[str, str]:
        """The settings of a session with a database."""

    def state(self, session: SparkSession, table: str) -> Any:
        """The table's version."""

    def restore(self, session: SparkSession, table: str, state: Any) -> None:
        """Sets the table back to a version."""

    def counted(
        self, session: SparkSession, table: str, run: Callable[[], Ran]
    ) -> tuple[list[tuple[Any, ...]], dict[str, int]]:
        """Runs a statement; returns its rows, and what its scans of lake tables read."""


class Iceberg:
    """Counts as Iceberg's scans do."""

    name = "iceberg"
    database = "lake.bench"
    kinds = ("join", "MERGE")
    about = "copy-on-write. A MERGE plans its target twice, so its files count twice"
    _metrics = {
        "files": "resultDataFiles",
        "manifests": "scannedDataManifests",
        "bytes": "totalDataFileSize",
    }

    def conf(self, folder: Path) -> dict[str, str]:
        """A catalog ``lake`` in the folder."""
        return {
            **_common(folder),
            "spark.jars": jars_of("iceberg"),
            "spark.sql.extensions": (
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
            ),
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
        }

    def state(self, session: SparkSession, table: str) -> Any:
        """The snapshot's ID."""
        return session.sql(f"SELECT max(snapshot_id) FROM lake.bench.{table}.refs").head()[0]

    def restore(self, session: SparkSession, table: str, state: Any) -> None:
        """By Iceberg's procedure."""
        session.sql(f"CALL lake.system.rollback_to_snapshot('bench.{table}', {state})")

    def counted(
        self,
        session: SparkSession,  # noqa: ARG002
        table: str,  # noqa: ARG002
        run: Callable[[], Ran],
    ) -> tuple[list[tuple[Any, ...]], dict[str, int]]:
        """By the plan that has run."""
        rows, plan = run()
        counts = dict.fromkeys(self._metrics, 0)
        for kind, operator in operators(plan()):
            if kind == "BatchScanExec":
                for name, metric in self._metrics.items():
                    counts[name] += int(operator.metrics().get(metric).get().value())
        return rows, counts


class Delta:
    """Counts all queries that Delta runs for a statement."""

    name = "delta"
    database = "bench"
    kinds = ("join", "MERGE")
    about = "without deletion vectors. The files of all of MERGE's queries are added up"

    def conf(self, folder: Path) -> dict[str, str]:
        """Delta's catalog as the session's. Its log is read by as many tasks as there are cores."""
        return {
            **_common(folder),
            "spark.jars": jars_of("delta"),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "2",
        }

    def state(self, session: SparkSession, table: str) -> Any:
        """The number of the version."""
        return session.sql(f"DESCRIBE HISTORY bench.{table}").head()["version"]

    def restore(self, session: SparkSession, table: str, state: Any) -> None:
        """Also reads the log, so that the next statement finds it in memory."""
        session.sql(f"RESTORE TABLE bench.{table} TO VERSION AS OF {state}")
        session.sql(f"SELECT count(*) FROM bench.{table} WHERE day IS NULL").collect()

    def counted(
        self, session: SparkSession, table: str, run: Callable[[], Ran]
    ) -> tuple[list[tuple[Any, ...]], dict[str, int]]:
        """By the metrics of Spark's scans."""
        ran: list[Ran] = []
        files = files_read(session, f"bench.{table}", lambda: ran.append(run()))
        return ran[0][0], {"files": sum(files)}


class Hudi:
    """Counts as Spark's scans do. MERGE passes through, so only the join is compared."""

    name = "hudi"
    database = "bench"
    kinds = ("join",)
    about = "copy-on-write, without a record key"

    def conf(self, folder: Path) -> dict[str, str]:
        """Hudi's catalog as the session's."""
        return {
            **_common(folder),
            **SETTINGS,
            "spark.jars": jars_of("hudi"),
        }

    def state(self, session: SparkSession, table: str) -> Any:  # noqa: ARG002
        """None: no statement changes the table."""
        return None

    def restore(self, session: SparkSession, table: str, state: Any) -> None:
        """Not needed."""

    def counted(
        self, session: SparkSession, table: str, run: Callable[[], Ran]
    ) -> tuple[list[tuple[Any, ...]], dict[str, int]]:
        """By the metrics of Spark's scans."""
        ran: list[Ran] = []
        files = files_read(session, f"bench.{table}", lambda: ran.append(run()))
        return ran[0][0], {"files": sum(files)}


def _common(folder: Path) -> dict[str, str]:
    return {
        **embedded_conf(folder / "warehouse", "local[2]"),
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
    }


FORMATS: dict[str, LakeTables] = {each.name: each for each in (Iceberg(), Delta(), Hudi())}
