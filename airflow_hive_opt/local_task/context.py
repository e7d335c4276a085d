"""The state that the scans of a statement share while the local task decides on them."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_hive_opt.documents.indexed_scans import SkippedKeys
from airflow_hive_opt.local_task.earlier_runs import EarlierRuns, digest_of
from airflow_hive_opt.local_task.engine import Engine
from airflow_hive_opt.local_task.key_sets import KeySets, failed
from airflow_hive_opt.local_task.shared_key_sets import SharedKeySets
from airflow_hive_opt.metastores.metastore import MetastoreError, PartitionCatalog
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.pruning.decisions import ScanDecision
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.statement.catalog import Table


class LocalTaskContext:
    """What the scans of a local task share: engine, metastore and results.

    Runs each key query once, and lists each table's partition names once.

    ``is_on_glue`` says that Spark's metastore is AWS Glue, and ``hand_over`` that other
    applications read the results. ``shared`` is the key set that the task shares with others.
    """

    def __init__(
        self,
        engine: Engine,
        metastore: PartitionCatalog,
        is_on_glue: bool,
        parameters: Mapping[str, object],
        earlier: EarlierRuns,
        hand_over: bool,
        shared: SharedKeySets | None = None,
    ) -> None:
        self.engine = engine
        self.metastore = metastore
        self.is_on_glue = is_on_glue
        self.parameters = parameters
        self.hand_over = hand_over
        self.metastore_failed = False
        """Whether a metastore call has failed: no further calls then."""
        self.keys = KeySets(engine, self.partition_names, shared)
        self.shared = shared
        self._earlier = earlier
        self._names: dict[str, list[Partition]] = {}
        self._totals: dict[str, int] = {}

    def partition_names(self, table: Table) -> list[Partition]:
        """All partitions of the table, by their names; raises ``MetastoreError``."""
        if table.name not in self._names:
            try:
                self._names[table.name] = self.metastore.partition_names(table)
            except MetastoreError:
                self.metastore_failed = True
                raise
        return self._names[table.name]

    def total(self, table: Table, beyond: int = 1) -> int:
        """The number of partitions; any smaller number above ``beyond`` may stand for it."""
        known = self._totals.get(table.name)
        if known is None or (known <= beyond and not self.metastore.names_are_cheap):
            self._totals[table.name] = self.metastore.partition_count(table, beyond)
        return self._totals[table.name]

    def failed(self, what: str, error: Exception) -> Reason:
        """Logs why a scan is not pruned; after an error of the metastore no scan calls it again."""
        self.metastore_failed |= isinstance(error, MetastoreError)
        return failed(what, error)

    def skips_keys(self, decision: ScanDecision) -> bool:
        """Whether an earlier run has found out that the scan's keys are not worth reading."""
        return bool(self._earlier.skipped_keys) and self._earlier.skips_keys(self.digest(decision))

    def skipped_keys(
        self, decision: ScanDecision, outcome: Reason, for_nothing: bool
    ) -> SkippedKeys | None:
        """The keys that the next run need not read if this was ``for_nothing``; else ``None``."""
        if not for_nothing and outcome is not Reason.NOT_ASKED_AGAIN:
            return None
        digest = self.digest(decision)
        return SkippedKeys(digest, 0 if for_nothing else self._earlier.skipped_keys[digest] + 1)

    def runs_without_index(self, decision: ScanDecision) -> int | None:
        """See :class:`~airflow_hive_opt.local_task.earlier_runs.EarlierRuns`."""
        return self._earlier.runs_without_index(decision.scan.table)

    def runs_without_keys(self, digest: str) -> int | None:
        """The number of runs in a row without these keys if this is one, else ``None``."""
        runs = self._earlier.skipped_keys.get(digest)
        return None if runs is None or not self._earlier.skips_keys(digest) else runs + 1

    def digest(self, decision: ScanDecision) -> str:
        """See :func:`~airflow_hive_opt.local_task.earlier_runs.digest_of`."""
        return digest_of(decision, self.parameters)
