"""What key indexes did for the scans of a statement, in words for logs and as values for XCom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from airflow_hive_opt.documents.descriptor import Descriptor
from airflow_hive_opt.documents.indexed_scans import Hop, IndexCode, IndexUse
from airflow_hive_opt.documents.log_text import counted, files_in_words
from airflow_hive_opt.statement.scan_ref import ScanRef


def uses_for_xcom(
    descriptor: Descriptor, scan: ScanRef, seconds: float | None
) -> list[dict[str, object]]:
    """The uses of one scan as plain values; ``seconds`` is the statement's time if it has run.

    Without key queries, which may be long.
    """
    return [_plain(use, seconds) for use in descriptor.index_uses if use.scan == scan]


def by_index(descriptor: Descriptor, scan: ScanRef) -> str:
    """The indexes that a scan's own keys have asked, for a line about these keys."""
    used = [use.column for use in _used(descriptor) if use.scan == scan and use.hop is None]
    return f" and the key index of {', '.join(used)}" if used else ""


def followed(descriptor: Descriptor) -> dict[ScanRef, str]:
    """The scans with conditions by keys of other large tables: each with what they leave."""
    found: dict[ScanRef, list[IndexUse]] = {}
    for use in _used(descriptor):
        if use.hop is not None:
            found.setdefault(use.scan, []).append(use)
    return {scan: _sentence(scan, uses) for scan, uses in found.items()}


def by_hop(decision: Mapping[str, Any]) -> str | None:
    """The files that a hop leaves of a scan, by its decision in a summary."""
    for use in decision.get("indexes") or ():
        hop = use.get("hop")
        if hop and use.get("code") == IndexCode.USED and hop.get("files") is not None:
            return files_in_words(hop["files"], use.get("total_files"))
    return None


def keys_in_words(hop: Hop) -> str:
    """``5 keys of returns and days``."""
    return (
        f"keys of {hop.source}"
        if hop.keys is None
        else f"{counted(hop.keys, 'key')} of {hop.source}"
    )


def _sentence(scan: ScanRef, uses: list[IndexUse]) -> str:
    name = scan.short_name + ("" if scan.name == scan.alias else f" as {scan.name}")
    by = (f"{use.column} with {keys_in_words(use.hop)}" for use in uses if use.hop)
    hop = uses[0].hop
    files = None if hop is None else hop.files
    what = "files" if files is None else files_in_words(files, uses[0].total_files)
    return f"{what} of {name} by the key index of {' and of '.join(by)}"


def _used(descriptor: Descriptor) -> list[IndexUse]:
    return [use for use in descriptor.index_uses if use.code == IndexCode.USED]


def _plain(use: IndexUse, seconds: float | None) -> dict[str, object]:
    found = {name: value for name, value in asdict(use).items() if name not in ("scan", "hop")}
    if use.hop is None:
        return found
    judged = use.code == IndexCode.USED and seconds is not None
    hop = use.hop.after(seconds or 0) if judged else use.hop
    return found | {"hop": {name: value for name, value in asdict(hop).items() if name != "sql"}}
