"""A descriptor as text for people: what each scan reads, its keys, and the reason."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_hive_opt.documents.descriptor import (
    Decision,
    Descriptor,
    PlannedFiles,
    RowFilter,
    Target,
)
from airflow_hive_opt.documents.indexed_scans import IndexUse, keys_in_words
from airflow_hive_opt.documents.log_text import plain
from airflow_hive_opt.documents.report import files_in_words, headline, scans
from airflow_hive_opt.metastores.partition_names import partition_name
from airflow_hive_opt.pruning.advice import advice_on

_SHOWN = 20


def descriptor_to_text(descriptor: Descriptor) -> str:
    """The headline, then a paragraph for each scan.

    A paragraph has the decision, the keys with their SQL, and the first partitions. The keys of a
    key set follow.
    """
    parts = [headline(descriptor), f"decided {descriptor.created}"]
    for decision, found in scans(descriptor):
        parts += ["", *_scan(decision, found)]
    for row_filter in descriptor.row_filters:
        parts += ["", *_row_filter(row_filter)]
    for row_filter in descriptor.index_filters:
        parts += ["", *_row_filter(row_filter)]
    if descriptor.index_uses:
        parts.append("")
    parts += map(_index_use, descriptor.index_uses)
    if descriptor.key_sets:
        parts.append("")
    for use in descriptor.key_sets:
        why = f": {use.why}" if use.why else ""
        parts.append(f"keys of {use.source} in the key set: {use.code}{why}")
    if descriptor.statement:
        parts += [
            "",
            "The statement, rewritten by the Correlation Optimizer:",
            descriptor.statement,
        ]
    return "\n".join(plain(part, keep="\n") for part in parts)


def _index_use(found: IndexUse) -> str:
    by = f" by {keys_in_words(found.hop)}" if found.hop else ""
    index = f"key index of {found.scan.name}.{found.column}{by}: {found.code}"
    if found.files is None:
        return index + (f": {found.why}" if found.why else "")
    files = files_in_words(found.files, found.total_files)
    unknown = f", {found.unknown:,} of them not in the index" if found.unknown else ""
    return f"{index}: {files}{unknown}, at snapshot {found.snapshot}"


def _row_filter(found: RowFilter) -> Iterator[str]:
    yield f"{found.scan.name} ({found.scan.table}): rows by {found.column}"
    yield f"  {found.source.keys:,} keys of {found.source.name}: {found.source.sql}"
    if found.is_range:
        for low, high in zip(found.values[::2], found.values[1::2]):
            yield f"    from {plain(low)} to {plain(high)}"
        return
    for value in found.values[:_SHOWN]:
        yield f"    {plain(value)}"
    if len(found.values) > _SHOWN:
        yield f"    and {len(found.values) - _SHOWN:,} more"


def _files(found: PlannedFiles) -> str:
    if found.files is None:
        return "the files are not known"
    files = files_in_words(found.files, found.total_files)
    partitions = "" if found.partitions is None else f", in {found.partitions:,} partitions"
    return f"{files}{partitions}, {found.bytes or 0:,} bytes"


def _scan(decision: Decision, target: Target | PlannedFiles | None) -> Iterator[str]:
    table = f" ({decision.scan.table})" if decision.scan.table else ""
    yield f"{decision.scan.name}{table}: {decision.reason}"
    yield f"  {decision.message}"
    if advice := advice_on(decision.reason):
        yield f"  to do: {advice} More: docs/guides/troubleshooting.md#nothing-is-pruned"
    if isinstance(target, PlannedFiles):
        yield f"  {_files(target)}"
        return
    if target is None:
        return
    yield f"  {target.kept:,} of {target.total:,} partitions, path {target.path}"
    for source in target.sources:
        yield f"  {source.keys:,} keys of {source.name}: {source.sql}"
    if target.filter:
        yield f"  metastore filter: {target.filter}"
    for partition in target.partitions[:_SHOWN]:
        yield f"    {plain(partition_name(target.columns, partition.values))}"
    if target.kept > _SHOWN:
        yield f"    and {target.kept - _SHOWN:,} more"
