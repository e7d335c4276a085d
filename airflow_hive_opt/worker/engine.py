"""The worker as the engine of the local task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_hive_opt.local_task.engine import Keys, NamesOf
from airflow_hive_opt.metastores.metastore import Remote
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.pruning.decisions import KeySource, Layer
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.statement.catalog import Catalog, Table
from airflow_hive_opt.worker.key_query import collect
from airflow_hive_opt.worker.keys import Keys as WorkerKeys
from airflow_hive_opt.worker.partition_names import fulfilling
from airflow_hive_opt.worker.tables import Tables
from airflow_hive_opt.worker.unanswered import Unanswered

if TYPE_CHECKING:
    from airflow_hive_opt.documents.descriptor import Snapshot, Target
    from airflow_hive_opt.documents.job import KeyBounds
    from airflow_hive_opt.documents.small_tables import SmallTable
    from airflow_hive_opt.local_task.context import LocalTaskContext
    from airflow_hive_opt.local_task.scan_kinds import RestrictedScan
    from airflow_hive_opt.pruning.decisions import KeyPredicate, ScanDecision
    from airflow_hive_opt.pruning.plan import Plan


class WorkerEngine:
    """An :class:`~airflow_hive_opt.local_task.engine.Engine` in this process.

    Every error is :class:`~airflow_hive_opt.worker.unanswered.Unanswered`: if Spark has to prune
    one scan, it runs the whole local task, because it starts anyway.
    """

    failures: tuple[type[Exception], ...] = ()

    def __init__(self, tables: Tables, bounds: KeyBounds, parameters: Mapping[str, object]) -> None:
        self._tables = tables
        self._bounds = bounds
        self._parameters = parameters
        self._calls: set[str] = set()
        self.leaves_out = False
        """Whether a condition was left out, so that Spark may keep fewer partitions."""

    @property
    def calls(self) -> tuple[str, ...]:
        """The functions of Spark that this engine has evaluated, in lower case."""
        return tuple(sorted(self._calls))

    @property
    def small_tables(self) -> tuple[SmallTable, ...]:
        """The tables whose files this engine has read."""
        return tuple(self._tables.read.values())

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The snapshots of the Iceberg tables that this engine has read."""
        return tuple(self._tables.snapshots.values())

    def collect(
        self,
        source: KeySource,
        names: NamesOf,  # noqa: ARG002 - the tables list them
    ) -> Keys | Reason:
        """See :class:`~airflow_hive_opt.local_task.engine.Engine`."""
        keys = collect(source, self._tables, self._bounds, self._parameters)
        if not isinstance(keys, Reason):
            self.note(keys)
        return keys

    def note(self, keys: WorkerKeys) -> None:
        """Notes on what the keys depend, for :attr:`calls` and :attr:`leaves_out`."""
        self._calls |= {name.lower() for name in keys.functions}
        self.leaves_out |= not keys.exact

    def collect_together(self, sources: Sequence[KeySource], names: NamesOf) -> list[Keys | Reason]:
        """See :class:`~airflow_hive_opt.local_task.engine.Engine`."""
        return [self.collect(source, names) for source in sources]

    def fulfilling(
        self,
        table: Table,
        layers: Sequence[Layer],
        partitions: Sequence[Partition],
        conditions: Sequence[str],
        keys: Keys | None = None,
    ) -> list[Partition] | None:
        """See :class:`~airflow_hive_opt.local_task.engine.Engine`.

        Also ``None`` if one of the conditions is left out: the map join must not evaluate it on
        partitions, as nothing tells whether it is deterministic.
        """
        assert keys is None or isinstance(keys, WorkerKeys), "keys of this engine"
        found = fulfilling(table, layers, partitions, conditions, self._parameters, keys)
        self.leaves_out |= found is not None and not found.exact
        if found is None or found.left_out:
            return None
        self._calls |= {name.lower() for name in found.functions}
        return found.partitions


class MetastoreTables:
    """The :class:`~airflow_hive_opt.worker.tables.SmallTables` of one metastore."""

    def __init__(self, catalog: Catalog, metastore: Remote) -> None:
        self._catalog = catalog
        self._metastore = metastore

    def table(self, name: str) -> Table | None:
        """See :class:`~airflow_hive_opt.worker.tables.SmallTables`."""
        return self._catalog.table(name)

    def storage(self, table: Table) -> Storage | None:
        """See :class:`~airflow_hive_opt.worker.tables.SmallTables`."""
        return self._metastore.storage(table)

    def stored_partitions(self, table: Table) -> list[tuple[Partition, Storage]]:
        """See :class:`~airflow_hive_opt.worker.tables.SmallTables`."""
        partitions = self._metastore.partition_names(table)
        found = []
        for partition, storage in zip(
            partitions, self._metastore.partition_storages(table, partitions), strict=True
        ):
            # dropped in between, or stored under a name that its values do not give
            if storage is None:
                raise Unanswered(
                    f"a partition of {table.name} was dropped meanwhile, or has a name that does "
                    "not follow from its values"
                )
            found.append((partition, storage))
        return found

    def partition_names(self, table: Table) -> list[Partition]:
        """See :class:`~airflow_hive_opt.worker.tables.SmallTables`."""
        return self._metastore.partition_names(table)


class OtherScans:
    """The :class:`~airflow_hive_opt.local_task.scan_kinds.OtherScans` that Spark alone has."""

    def lake_scan(
        self,
        context: LocalTaskContext,  # noqa: ARG002
        decision: ScanDecision,
        plan: Plan,  # noqa: ARG002
    ) -> RestrictedScan:
        """Raises :class:`~airflow_hive_opt.worker.unanswered.Unanswered`."""
        raise Unanswered(
            f"{decision.scan.name} is a table of {decision.table.provider}, which only Spark prunes"
        )

    def data_column(
        self,
        context: LocalTaskContext,  # noqa: ARG002
        predicate: KeyPredicate,
        target: Target | None,  # noqa: ARG002
    ) -> RestrictedScan:
        """Raises :class:`~airflow_hive_opt.worker.unanswered.Unanswered`."""
        raise Unanswered(f"only Spark can sample the files of {predicate.relation.scan.name}")
