"""Follows keys from one large table to the next: a *hop*.

After the local task, some scans of large tables read only a part of their table. The keys in such a
part ask the key index of another table that is joined with it. That narrows the other table too, so
its part may give keys for a third one, or for an index of the first. The tables are held to
the snapshots from which the keys came.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Optional, Union

from airflow_hive_opt.documents.descriptor import Descriptor
from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.documents.indexed_scans import (
    HeldTable,
    Hop,
    IndexCode,
    IndexUse,
    SkippedKeys,
)
from airflow_hive_opt.local_task.context import LocalTaskContext
from airflow_hive_opt.local_task.earlier_runs import digest_of_hop, is_for_nothing
from airflow_hive_opt.local_task.engine import Keys
from airflow_hive_opt.local_task.handed_over import only_identified
from airflow_hive_opt.local_task.key_sets import KeySets
from airflow_hive_opt.pruning.decisions import KeySource, ScanDecision
from airflow_hive_opt.pruning.hops import hops
from airflow_hive_opt.pruning.plan import Plan
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.spark.catalog.lakes.formats import named
from airflow_hive_opt.spark.local_task.table_parts import (
    Part,
    Size,
    TableParts,
    tables_of,
    worth_asking,
)
from airflow_hive_opt.spark.local_task.value_lists import ValueFilter, value_filters
from airflow_hive_opt.statement.budget import Budget, OverBudget
from airflow_hive_opt.statement.scan_ref import ScanRef
from airflow_hive_opt.statement.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.spark.catalog.resolved_names import Names
    from airflow_hive_opt.spark.local_task.engine import SparkScans

log = logging.getLogger(__name__)
MOST_HOPS = 3
"""How many times in a row the keys of one table ask the index of the next."""
_TOO_MANY = (Reason.TOO_MANY_KEYS, Reason.KEYS_TOO_LARGE)
_NOT_COMPARED = (Reason.TYPE_NOT_COMPARABLE, Reason.KEYS_NOT_COMPARED_AS_COLUMNS)


class NarrowedTables:
    """The hops of one statement. ``names`` are set if another application runs the map join.

    ``budget`` is that of the statement's planning, to which each further planning belongs.
    """

    def __init__(
        self,
        session: SparkSession,
        context: LocalTaskContext,
        plan: Plan,
        scans: SparkScans,
        settings: Settings,
        budget: Budget,
        names: Optional[Names],
    ) -> None:
        self._session = session
        self._context = context
        self._plan = plan
        self._parts = TableParts(session, plan, scans.snapshots(plan))
        self._lookup = scans.lookup(plan, None)
        self._settings = settings
        self._budget = budget
        self._names = names
        self._keys = KeySets(context.engine, context.partition_names)
        self._asked: set[tuple[ScanRef, tuple[str, ...]]] = set()

    def followed(self, descriptor: Descriptor) -> Descriptor:
        """The descriptor with the conditions that hops add; an error costs only hops."""
        if not any(each.table.indexed for each in self._plan.decisions):
            return descriptor
        try:
            for _ in range(MOST_HOPS):
                parts = self._parts.narrowed(descriptor)
                used = _used(descriptor)
                for decision in self._planned(parts):
                    if decision.scan not in used:
                        descriptor = self._with_hop(descriptor, decision, parts)
                if _used(descriptor) == used:
                    break
        except (OverBudget, RecursionError) as error:
            log.info("no more keys of large tables are read: %s", error)
        except self._context.engine.failures as error:
            log.warning("no more keys of large tables are read: %s", in_words(error))
        except Exception:
            log.warning("the planner fails on keys of large tables", exc_info=True)
        return descriptor

    def _planned(self, parts: Mapping[ScanRef, Part]) -> Sequence[ScanDecision]:
        with self._budget:
            found = hops(self._plan, [part.table for part in parts.values()], self._settings)
        if self._names is None:
            return found
        names = self._names
        plan = replace(self._plan, decisions=found, predicates=())
        identified = only_identified(plan, lambda texts: names.resolve(texts).unidentified)
        return [decision for decision in identified.decisions if decision.pruned]

    def _with_hop(
        self, descriptor: Descriptor, decision: ScanDecision, parts: Mapping[ScanRef, Part]
    ) -> Descriptor:
        """The descriptor with the outcome of one hop, which may be none."""
        relation, size = decision.relation, self._parts.size(descriptor, decision.scan)
        if relation is None or size is None or size.files == 0 or self._lookup is None:
            return descriptor  # there is nothing to save, or nothing is known
        asked = worth_asking(decision, size, parts)
        if asked is None:
            return _with_uses(descriptor, _refused(decision, parts, IndexCode.COSTS_MORE))
        queries = decision.scan, tuple(source.sql for source in asked.sources)
        if queries in self._asked:
            return descriptor
        self._asked.add(queries)
        digest = digest_of_hop(asked, self._context.parameters)
        runs = self._context.runs_without_keys(digest)
        if runs is not None:
            skipped = SkippedKeys(digest, runs)
            uses = _refused(asked, parts, IndexCode.NOT_ASKED_AGAIN, skipped=skipped)
            return _with_uses(descriptor, uses)
        if refusal := self._lookup.refusal(relation):
            return _with_uses(descriptor, _refused(asked, parts, *refusal))
        return self._looked_up(descriptor, asked, size, parts, digest)

    def _looked_up(
        self,
        descriptor: Descriptor,
        decision: ScanDecision,
        before: Size,
        parts: Mapping[ScanRef, Part],
        digest: str,
    ) -> Descriptor:
        """The descriptor after the key queries and the lookup in the indexes."""
        lookup, relation = self._lookup, decision.relation
        assert lookup is not None and relation is not None, "as the caller has checked"
        began = time.monotonic()
        filters = self._filters(decision)
        hop = Hop(_held(decision, parts), seconds=round(time.monotonic() - began, 3), digest=digest)
        if isinstance(filters, Reason):
            skipped = SkippedKeys(digest, 0) if filters in _TOO_MANY else None
            uses = _refused(decision, parts, *_code_of(filters), hop.seconds, skipped)
            return _with_uses(descriptor, uses)
        indexed = lookup.indexed(decision, filters)
        lists = [each.row_filter for each in filters if each.is_exact]
        added = (*lists, *indexed.conditions) if indexed.conditions else ()
        after = self._parts.size_with(descriptor, relation, added) if added else None
        uses = list(indexed.uses)
        if after is not None and is_for_nothing(after.files, before.files):
            added = ()
            uses = [replace(use, code=IndexCode.MOST_FILES_HOLD_KEYS) for use in uses]
        spent = sum(parts[each.scan].size.cost for each in tables_of(decision))
        lost = after is not None and before.cost - after.cost < spent
        useless = lost or any(use.code == IndexCode.MOST_FILES_HOLD_KEYS for use in uses)
        skipped = SkippedKeys(digest, 0) if useless else None
        if after is not None:
            hop = replace(hop, files=after.files, bytes=after.bytes)
        hop = replace(hop, files_without=before.files, bytes_without=before.bytes)
        known = {each.column: each.row_filter.source for each in filters}
        descriptor = _with_uses(
            descriptor,
            [
                replace(
                    use,
                    hop=replace(hop, source=keys.name, sql=keys.sql, keys=keys.keys),
                    skipped_keys=skipped,
                )
                for use in uses
                for keys in [known[use.column]]
            ],
        )
        if not added:
            return descriptor
        if after is not None:
            self._parts.narrow(decision.scan, after)
        held = (each for table in tables_of(decision) for each in parts[table.scan].held)
        return replace(
            descriptor,
            index_filters=(*descriptor.index_filters, *added),
            held_scans=tuple(dict.fromkeys((*descriptor.held_scans, *indexed.held, *held))),
        )

    def _filters(self, decision: ScanDecision) -> Union[tuple[ValueFilter, ...], Reason]:
        self._keys.collect_together(decision.sources)
        format_ = named(self._session, decision.table.provider)
        most = partial(format_.most_values, self._session)
        return value_filters(decision, self._keys_of, lambda _: (), most)

    def _keys_of(self, source: KeySource) -> Union[Keys, Reason]:
        if self._context.hand_over and source.skeletons:
            return Reason.NOT_HANDED_OVER
        return self._keys.of(source)


def _used(descriptor: Descriptor) -> set[ScanRef]:
    """The scans with conditions by an index: a hop does not ask for these again."""
    return {use.scan for use in descriptor.index_uses if use.code == IndexCode.USED}


def _held(decision: ScanDecision, parts: Mapping[ScanRef, Part]) -> tuple[HeldTable, ...]:
    return tuple(dict.fromkeys(parts[each.scan].held_table for each in tables_of(decision)))


def _refused(
    decision: ScanDecision,
    parts: Mapping[ScanRef, Part],
    code: IndexCode,
    why: str = "",
    seconds: Optional[float] = None,
    skipped: Optional[SkippedKeys] = None,
) -> list[IndexUse]:
    """The uses of a hop without keys, which the log has too."""
    source = decision.sources[0]
    log.info(
        "the key index of %s.%s is not asked with keys of %s, %s%s",
        *(decision.scan.short_name, ", ".join(decision.columns), source.name, code.sentence),
        f": {why}" if why else "",
    )
    digest = skipped.digest if skipped else ""
    hop = Hop(_held(decision, parts), source.name, source.sql, seconds=seconds, digest=digest)
    return [
        IndexUse(decision.scan, column, code, why, hop=hop, skipped_keys=skipped)
        for column in decision.columns
    ]


def _with_uses(descriptor: Descriptor, uses: Sequence[IndexUse]) -> Descriptor:
    """The descriptor with these uses, in place of those of an earlier hop to the same scan."""
    scans = {use.scan for use in uses}
    kept = (use for use in descriptor.index_uses if use.hop is None or use.scan not in scans)
    return replace(descriptor, index_uses=(*kept, *uses))


def _code_of(reason: Reason) -> tuple[IndexCode, str]:
    """Why keys that can't be read do not ask an index."""
    if reason in _TOO_MANY:
        return IndexCode.KEYS_NOT_LISTED, reason.sentence
    code = IndexCode.OTHER_TYPE if reason in _NOT_COMPARED else IndexCode.KEYS_NOT_READ
    return code, reason.sentence
