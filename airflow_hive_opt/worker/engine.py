"""What a local task asks: the keys of sources, and the partitions that fulfil conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.pruning.decisions import KeySource, Layer
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.worker.key_query import Bounds, collect
from airflow_hive_opt.worker.keys import Keys
from airflow_hive_opt.worker.partition_names import fulfilling
from airflow_hive_opt.worker.tables import Tables


@dataclass(frozen=True)
class Engine:
    """Answers for one statement, whose named parameters have the values ``parameters``.

    ``functions`` are the functions that the answers so far depend on, by their names in the
    statement, in lower case. The answers hold if these are Spark's own functions.
    """

    tables: Tables
    bounds: Bounds
    parameters: Mapping[str, object] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)

    def collect(self, source: KeySource) -> Keys | Reason:
        """The keys of ``source``, or the reason why they can't be used.

        Raises :class:`~airflow_hive_opt.worker.unanswered.Unanswered`.
        """
        found = collect(source, self.tables, self.bounds, self.parameters)
        if isinstance(found, Keys):
            self.functions.update(found.functions)
        return found

    def fulfilling(
        self,
        table: Table,
        layers: Sequence[Layer],
        partitions: Sequence[Partition],
        conditions: Sequence[str],
        keys: Keys | None = None,
    ) -> list[Partition] | None:
        """The partitions for which all ``conditions`` are true, with ``keys`` for at least one key.

        Includes every partition whose name does not determine its values.
        ``None`` if the conditions are not deterministic. Raises
        :class:`~airflow_hive_opt.worker.unanswered.Unanswered`.
        """
        found = fulfilling(table, layers, partitions, conditions, self.parameters, keys)
        if found is None:
            return None
        self.functions.update(found.functions)
        return found.partitions
