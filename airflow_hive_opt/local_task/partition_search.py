"""Finds the partitions that match a scan's keys and fulfil its conditions."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_hive_opt.local_task.context import LocalTaskContext
from airflow_hive_opt.local_task.engine import Keys
from airflow_hive_opt.local_task.key_sets import failed
from airflow_hive_opt.local_task.selection import Selection, filter_of, is_long_on_glue
from airflow_hive_opt.metastores.partitions import (
    DEFAULT_PARTITION,
    Partition,
    digest_of_values,
    matching,
)
from airflow_hive_opt.metastores.thrift.partition_filter import VALUES_A_FILTER
from airflow_hive_opt.pruning.decisions import Layer
from airflow_hive_opt.pruning.reasons import Reason

# Partition names times keys that Spark may compare pair by pair; that takes some seconds.
_COMPARISONS = 50_000_000


class PartitionSearch:
    """The search of one local task."""

    def __init__(self, context: LocalTaskContext) -> None:
        self._context = context
        self._metastore = context.metastore

    def find(self, selection: Selection, total: int) -> bool:
        """Finds the selection's partitions; returns whether any key or condition was evaluated.

        Raises Spark's errors and ``MetastoreError``.
        """
        decision = selection.decision
        (alternative,) = decision.alternatives
        if any(not keys.count for keys in selection.keys if not selection.may_grow(keys)):
            selection.asked([], selection.keys)
            return True
        kept = selection.candidates = self._candidates(selection, total)
        if selection.growing:
            wanted = selection.wanted(selection.growing)
            kept = list(matching(kept, selection.types, wanted, decision.table.by_serde))
            selection.leave_out_by_names(selection.candidates, kept)
        if tuples := [*selection.tuples, *selection.growing]:
            selection.asked(kept, [keys for keys, _ in tuples])
        filters = bool(tuples) and not (self._context.is_on_glue and is_long_on_glue(selection))
        by_layers: dict[tuple[Layer, ...], list[str]] = {}
        for condition in alternative.conditions:
            by_layers.setdefault(condition.layers, []).append(f"({condition.sql})")
        questions: list[tuple[Sequence[Layer], Sequence[str], Keys | None]] = [
            *((layers, texts, None) for layers, texts in by_layers.items()),
            *((k.source.layers, k.source.conditions, k) for k in selection.compared),
        ]
        unstable: set[str] = set()
        for layers, texts, keys in questions:
            if keys and not keys.source.hashable and len(kept) * keys.count > _COMPARISONS:
                selection.failure = Reason.TOO_MANY_KEYS
                continue
            try:
                nothing = keys is not None and not keys.count
                table, engine = decision.table, self._context.engine
                answer = [] if nothing else engine.fulfilling(table, layers, kept, texts, keys)
            except self._context.engine.failures as error:
                selection.failure = failed(
                    f"a condition on the partitions of {decision.scan.name} can't be evaluated",
                    error,
                )
                filters = False  # the filter would fail in the map join stage too
                continue
            if answer is None and keys is None and len(texts) > 1:
                questions += [(layers, [text], None) for text in texts]  # some may be deterministic
                continue
            if answer is None:
                selection.failure = Reason.CONDITION_NOT_DETERMINISTIC
                unstable.update(texts)
                filters = filters and keys is None and len(layers) == 1
                continue
            if keys and selection.may_grow(keys):
                selection.leave_out_by_names(kept, answer)
            kept = answer
            selection.asked(kept, [keys] if keys else [])
        if filters:
            stable = [each for each in alternative.conditions if f"({each.sql})" not in unstable]
            selection.filter = filter_of(selection, stable)
        for table in selection.tables_of_names():
            selection.names[table.name] = digest_of_values(self._context.partition_names(table))
        return selection.answered

    def _candidates(self, selection: Selection, total: int) -> list[Partition]:
        """The partitions that match the keys' tuples; all partitions if there are no tuples."""
        table, wanted = selection.decision.table, selection.wanted(selection.tuples)
        names_the_null = table.by_serde and DEFAULT_PARTITION in selection.values
        few = len(selection.values) <= VALUES_A_FILTER or not self._metastore.names_are_cheap
        if wanted and few and not names_the_null:
            return self._metastore.partitions_by_keys(table, wanted, total)
        names = self._context.partition_names(table)
        return list(matching(names, selection.types, wanted, table.by_serde))
