"""One task instance: its figures from XCom and the report, its lists from the descriptor."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError

from airflow_hive_opt.documents import indexed_scans as documents
from airflow_hive_opt.documents.descriptor import Descriptor, PlannedFiles, Target
from airflow_hive_opt.documents.figures import SUMMARY_KEY
from airflow_hive_opt.documents.report import (
    NO_PARTITIONED_TABLE,
    PHASES,
    StageSummary,
    StoredReport,
    headline,
    scans,
)
from airflow_hive_opt.metastores.partition_names import partition_name
from airflow_hive_opt.pages.models import (
    EliminatedJoin,
    IndexTrial,
    IndexUse,
    Instance,
    KeyPredicate,
    Partition,
    PartitionPage,
    Phase,
    ReadOfTable,
    Scan,
    Source,
    Stage,
    Statement,
    Whereabouts,
    Work,
)
from airflow_hive_opt.pages.places import places_of
from airflow_hive_opt.pages.task_run import TaskRun
from airflow_hive_opt.pruning.advice import advice_on
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.statement.script import split_settings

log = logging.getLogger(__name__)

RETURN_VALUE = "return_value"
"""The XCom key of a run's summary."""
# How Airflow begins a rendered field that it has cut.
_CUT = "Truncated. You can change this behaviour"


@dataclass(frozen=True)
class Known:
    """All that is known of a task instance."""

    run: TaskRun
    xcoms: Mapping[str, Any]
    rendered: Mapping[str, Any]
    descriptor: Descriptor | None
    report: StoredReport | None
    where: Whereabouts
    spark_ui: str
    why_not_there: str = ""


def instance_of(known: Known) -> Instance:
    """The API's answer for one task instance."""
    run, figures = known.run, known.run.figures
    summary = _summary(known)
    statement = _statement(known.rendered)
    found = _scans(known.descriptor, summary)
    ran = known.descriptor.statement if known.descriptor else None
    if statement.user and not statement.cut:
        found = _with_places(found, statement.user, ran)
    application = summary.get("application_id")
    return Instance(
        dag_id=run.key.dag_id,
        run_id=run.key.run_id,
        task_id=run.key.task_id,
        map_index=run.key.map_index,
        try_number=run.try_number,
        state=run.state,
        logical_date=run.logical_date,
        start_date=run.start_date,
        duration=run.duration,
        headline=_headline(known),
        stopped=figures.stopped,
        reason=figures.reason,
        kept=figures.kept,
        total=figures.total,
        scans=found,
        predicates=list(_read_all(KeyPredicate, summary.get("predicates"))),
        reads=list(_read_all(ReadOfTable, summary.get("reads"))),
        phases=_phases(figures.seconds, summary.get("work")),
        statement=statement,
        stages=[Stage.of(stage, _starts(found, ran)) for stage in _stages(known)],
        eliminated=list(_read_all(EliminatedJoin, summary.get("eliminated"))),
        vanished=_count(summary.get("vanished")) or 0,
        appeared=_count(summary.get("appeared")) or 0,
        index_trial=next(_read_all(IndexTrial, [summary.get("index_trial")]), None),
        driver_peak_heap=_count(summary.get("driver_peak_heap")),
        application_id=str(application) if application else None,
        spark_ui_url=_spark_ui(known.spark_ui, application),
        descriptor=known.where,
        descriptor_note=known.why_not_there,
    )


def partitions_of(target: Target, search: str, offset: int, limit: int | None) -> PartitionPage:
    """The partitions of a scan whose names contain ``search``, in order of their names."""
    every = sorted(
        ((partition_name(target.columns, part.values), part) for part in target.partitions),
        key=lambda pair: pair[0],
    )
    wanted = search.lower()
    found = [
        (name, part)
        for name, part in every
        if wanted in name.lower() or any(wanted in (value or "").lower() for value in part.values)
    ]
    shown = found[offset:] if limit is None else found[offset : offset + limit]
    return PartitionPage(
        scan=target.scan.name,
        table=target.scan.table,
        reference=target.scan.reference,
        columns=list(target.columns),
        found=len(found),
        total=target.kept,
        partitions=[
            Partition(
                values=[None if value is None else _readable(value) for value in part.values],
                name=_readable(name),
                location=None if part.location is None else _readable(part.location),
                rows=part.rows,
                bytes=part.bytes,
            )
            for name, part in shown
        ],
    )


def _readable(text: str) -> str:
    """The text; JSON in UTF-8 can't represent half a surrogate pair."""
    return text.encode(errors="backslashreplace").decode()


def _summary(known: Known) -> Mapping[str, Any]:
    """The run's summary from XCom, otherwise from the report; empty if both are gone."""
    for key in (RETURN_VALUE, SUMMARY_KEY):
        found = known.xcoms.get(key)
        if isinstance(found, Mapping) and "decisions" in found:
            return found
    return known.report.summary if known.report else {}


def _headline(known: Known) -> str:
    if known.run.figures.stopped:
        return f"stopped before the join: {known.run.figures.stopped}"
    if known.descriptor is not None:
        return headline(known.descriptor)
    figures = known.run.figures
    if figures.reason == "PRUNED" and not figures.total:
        return "conditions with the keys restricted the scans"
    if not figures.total:
        return f"pruned nothing: {_sentence(figures.reason)}"
    share = 100 * (figures.total - figures.kept) / figures.total
    return f"kept {figures.kept:,} of {figures.total:,} partitions ({share:.1f} % pruned)"


def _scans(descriptor: Descriptor | None, summary: Mapping[str, Any]) -> list[Scan]:
    decided = list(_read_all(Scan, map(_with_sentence, _items(summary.get("decisions")))))
    if descriptor is None:
        return decided
    ways = {(scan.alias, scan.reference): scan.way for scan in decided}
    return [
        Scan(
            scan=decision.scan.name,
            alias=decision.scan.alias,
            table=decision.scan.table,
            reference=decision.scan.reference,
            reason=decision.reason,
            sentence=decision.message,
            advice=advice_on(decision.reason),
            way=ways.get((decision.scan.alias, decision.scan.reference)),
            indexes=[_index_use(use) for use in descriptor.index_uses if use.scan == decision.scan],
            **_of(found),
        )
        for decision, found in scans(descriptor)
    ]


def _with_places(found: Sequence[Scan], script: str, ran: str | None) -> list[Scan]:
    """The scans with their places; ``ran`` is the statement, if a rule has rewritten it."""
    places = places_of(script, [(scan.alias, _within(script, scan, ran)) for scan in found])
    return [
        scan.model_copy(update={"place": place}) for scan, place in zip(found, places, strict=True)
    ]


def _starts(found: Sequence[Scan], ran: str | None) -> list[int | None]:
    """The positions of the scans in the user's statement, which Hive's stages name."""
    return [
        scan.place.start
        if scan.place
        else (scan.reference[0] if scan.reference and ran is None else None)
        for scan in found
    ]


def _stages(known: Known) -> tuple[StageSummary, ...]:
    return known.report.stages if known.report else ()


def _within(script: str, scan: Scan, ran: str | None) -> tuple[int, int] | None:
    """The scan's reference if it is a position in ``script`` too."""
    if scan.reference is None or ran is None:
        return scan.reference
    _, stop = scan.reference
    return scan.reference if split_settings(script)[1][:stop] == ran[:stop] else None


def _of(target: Target | PlannedFiles | None) -> dict[str, Any]:
    if isinstance(target, PlannedFiles):
        return {"files": target.files, "total_files": target.total_files}
    if target is None:
        return {}
    return {
        "path": target.path,
        "kept": target.kept,
        "total": target.total,
        "columns": list(target.pruned_columns),
        "filter": target.filter,
        "sources": [
            Source(name=s.name, aliases=list(s.aliases), sql=s.sql, keys=s.keys)
            for s in target.sources
        ],
    }


def _with_sentence(decision: object) -> object:
    if not isinstance(decision, Mapping):
        return decision
    code = str(decision.get("reason"))
    told = {"sentence": _sentence(code), "advice": advice_on(code)}
    uses = _read_all(IndexUse, map(_with_sentence_of_index, _items(decision.get("indexes"))))
    return {**decision, **told, "indexes": list(uses)}


def _with_sentence_of_index(use: object) -> object:
    if not isinstance(use, Mapping):
        return use
    return {**use, "sentence": _sentence_of_index(str(use.get("code")))}


def _index_use(use: documents.IndexUse) -> IndexUse:
    return IndexUse.model_validate({**asdict(use), "sentence": _sentence_of_index(use.code)})


def _sentence_of_index(code: str) -> str:
    """The meaning of the code; the code itself if this version does not know it."""
    try:
        return documents.IndexCode(code).sentence
    except ValueError:
        return code


def _sentence(code: str) -> str:
    """The meaning of a reason code; the code itself if this version does not know it."""
    try:
        return Reason(code).sentence
    except ValueError:
        return "no partitioned table is read" if code == NO_PARTITIONED_TABLE else code


def _phases(seconds: Mapping[str, float], work: object) -> list[Phase]:
    calls = work if isinstance(work, Mapping) else {}
    # databases do not keep the order of a JSON object's names
    ordered = sorted(seconds, key=lambda name: PHASES.index(name) if name in PHASES else -1)
    return [
        Phase(name=name, seconds=seconds[name], work=next(_read_all(Work, [calls.get(name)]), None))
        for name in ordered
    ]


def _statement(rendered: Mapping[str, Any]) -> Statement:
    user, ran = (_text(rendered.get(name)) for name in ("sql", "statement"))
    cut = any(text is not None and text.startswith(_CUT) for text in (user, ran))
    return Statement(user=user, ran=ran, cut=cut)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value not in ("", "None") else None


def _spark_ui(address: str, application: object) -> str | None:
    if not address or not application:
        return None
    return address.replace("{application_id}", quote(str(application), safe=""))


def _read_all(model: Any, values: object) -> Iterator[Any]:
    """The values that fit the model; another version of this package may have written others."""
    for value in _items(values):
        try:
            yield model.model_validate(value)
        except ValidationError:
            log.debug("not shown: %r", value)


def _items(values: object) -> Sequence[object]:
    if isinstance(values, (str, bytes, Mapping)) or values is None:
        return ()
    return list(values) if hasattr(values, "__iter__") else ()


def _count(value: object) -> int | None:
    return value if type(value) is int else None
