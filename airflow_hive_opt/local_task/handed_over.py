"""Leaves out what must not be handed over to a map join in another application."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace

from airflow_hive_opt.pruning.decisions import KeySource, Layer, ScanDecision
from airflow_hive_opt.pruning.plan import Plan
from airflow_hive_opt.pruning.reasons import Reason

log = logging.getLogger(__name__)


def only_identified(plan: Plan, unidentified: Callable[[Iterator[str]], frozenset[str]]) -> Plan:
    """The plan without keys and conditions that depend on unidentified views or functions.

    ``unidentified`` returns those views and functions in some texts that another session can't
    recognize. The texts also contain those of the layers between a scan and its conditions.
    """
    return replace(
        plan,
        decisions=tuple(_handed_over(found, unidentified) for found in plan.decisions),
        predicates=tuple(
            found for found in plan.predicates if not unidentified(_texts_of_source(found.source))
        ),
    )


def _handed_over(
    decision: ScanDecision, unidentified: Callable[[Iterator[str]], frozenset[str]]
) -> ScanDecision:
    names = unidentified(_texts_of(decision)) if decision.pruned else frozenset()
    if not names:
        return decision
    log.warning(
        "%s is not pruned: its keys depend on %s, which may be another in the map join's task",
        decision.scan.name,
        " or ".join(sorted(names)),
    )
    return replace(decision, reason=Reason.NOT_HANDED_OVER, alternatives=())


def _texts_of(decision: ScanDecision) -> Iterator[str]:
    for alternative in decision.alternatives:
        for source in alternative.sources:
            yield from _texts_of_source(source)
        for condition in alternative.conditions:
            yield f"SELECT {condition.sql}"
            yield from _texts_of_layers(condition.layers)


def _texts_of_source(source: KeySource) -> Iterator[str]:
    yield source.sql
    yield from (f"SELECT {condition}" for condition in source.conditions)
    yield from _texts_of_layers(source.layers)


def _texts_of_layers(layers: tuple[Layer, ...]) -> Iterator[str]:
    for layer in layers:
        yield from (f"SELECT {sql}" for _, sql in layer.columns)
