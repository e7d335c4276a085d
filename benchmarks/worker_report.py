"""Writes the results of the local task in the worker."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Record, about, table_row


def write_worker(document: Mapping[str, Any], folder: Path) -> None:
    """Writes ``worker.json`` and ``worker.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "worker.json").write_text(json.dumps(document, indent=1))
    pairs: list[Record] = document["pairs"]
    measured: list[Record] = document["measured"]
    lines = [
        "# The local task in the worker: what it answers, and what it costs",
        "",
        f"All queries of TPC-DS and TPC-H at scale {document['scale']:g}. A *pair* is a query and "
        "a fact table of which Spark's local task prunes a scan. It is *answered* if the worker "
        "prunes all these scans too. The worker may keep more partitions than Spark, never fewer.",
        "",
        *_shares(pairs),
        "",
        *_reasons(pairs),
        "## Pairs that differ",
        "",
        *_differing(pairs),
        "",
    ]
    if measured:
        lines += [
            f"## {document['matching']} of {document['partitions']:,} partitions",
            "",
            "A local task in a process that has just started, from its start to the descriptor. "
            "The fastest run counts, because other work ran on the machine. Memory is the "
            "largest resident size of the process and of those below it.",
            "",
            *_costs(measured),
            "",
            *about(document["machine"], [one["noise"] for one in measured]),
            f"- load: {min(o['load'] for o in measured):.1f} to "
            f"{max(o['load'] for o in measured):.1f}",
        ]
    (folder / "worker.md").write_text("\n".join(lines) + "\n")


def _shares(pairs: Sequence[Record]) -> Iterator[str]:
    yield table_row(("suite", "pairs", "answered", "share", "same partitions", "more", "fewer"))
    yield table_row(("---", *["---:"] * 6))
    suites = sorted({pair["suite"] for pair in pairs})
    for suite in [*suites, "all"]:
        own = [pair for pair in pairs if suite in (pair["suite"], "all")]
        answered = [pair for pair in own if not pair["why"]]
        fewer = [pair for pair in answered if pair["missing"]]
        more = [pair for pair in answered if pair["more"] and not pair["missing"]]
        same = len(answered) - len(fewer) - len(more)
        share = f"{len(answered) / len(own):.0%}" if own else ""
        yield table_row(
            (suite, *map(str, (len(own), len(answered), share, same, len(more), len(fewer))))
        )


def _reasons(pairs: Sequence[Record]) -> Iterator[str]:
    counted = Counter(pair["why"] for pair in pairs if pair["why"])
    if not counted:
        return
    yield from ("| why not | pairs |", "| --- | ---: |")
    for why, count in counted.most_common():
        yield table_row((_one_line(why), str(count)))
    yield ""


def _differing(pairs: Sequence[Record]) -> Iterator[str]:
    found = [pair for pair in pairs if pair["why"] or pair["more"] or pair["missing"]]
    if not found:
        yield "None."
        return
    yield table_row(("query", "table", "partitions", "kept by Spark", "more", "fewer", "why not"))
    yield table_row(("---", "---", *["---:"] * 4, "---"))
    for pair in found:
        numbers = (f"{pair[name]:,}" for name in ("total", "kept", "more", "missing"))
        query = f"{pair['suite']} q{pair['query']:02}"
        yield table_row((query, pair["table"], *numbers, _one_line(pair["why"])))


def _costs(measured: Sequence[Record]) -> Iterator[str]:
    yield table_row(("local task", "seconds", "CPU seconds", "MB", "partitions kept", "runs"))
    yield table_row(("---", *["---:"] * 5))
    for by in dict.fromkeys(one["by"] for one in measured):
        own = [one for one in measured if one["by"] == by]
        seconds, cpu = (min(one[name] for one in own) for name in ("seconds", "cpu_seconds"))
        peak = max(one["peak"] for one in own) / 1e6
        kept = f"{own[0]['kept']:,}"
        row = (by, f"{seconds:.2f}", f"{cpu:.2f}", f"{peak:,.0f}", kept, str(len(own)))
        yield table_row(row)


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
