"""Writes the results of TPC-DS and TPC-H: rows, seconds, and what each scan read."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from matplotlib import pyplot

from benchmarks.contenders import OURS, SPARK, SWITCHED, TUNED
from benchmarks.report import Record, about, spread, table_row

OTHERS = (SPARK, TUNED, SWITCHED)
# A scan that reads all partitions but the NULL one is not pruned.
_NULL = 1


def write_suite(title: str, document: Mapping[str, Any], file: Path) -> None:
    """Writes ``document`` to ``file``, and a page and a plot beside it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document, indent=1))
    runs: list[Record] = document["runs"]
    lines = [
        f"# {title} at scale {document['scale']:g}: all queries, whole and unmodified",
        "",
        "Median seconds, with the range and the number of runs. Warm: one session, in which "
        "Spark's cached listings are dropped before each run. Cold: a fresh JVM for each run, "
        "whose start is not counted. *Partitions* is the sum over all scans of a fact table. In "
        "brackets are the lengths of this package's partition lists. A reason says why a scan has "
        "no list; NOT_ASKED_AGAIN: in the run before, the keys matched nearly all partitions. CPU "
        "time is that of the JVM and of Python; a busy machine disturbs it less.",
        "",
    ]
    starts = [start for start in ("warm", "cold") if any(r["start"] == start for r in runs)]
    ratios = {}
    for start in starts:
        groups = _grouped(runs, start)
        queries = sorted({query for query, _ in groups})
        others = [name for name in OTHERS if any(who == name for _, who in groups)]
        ratios[start] = {name: _ratios(groups, name) for name in others}
        cpu = {name: _ratios(groups, name, "cpu_seconds") for name in others}
        lines += [f"## {start.capitalize()}", ""]
        every = f"Geometric mean over {len(queries)} queries: {_means(ratios[start])}; "
        lines += [f"{every}CPU time: {_means(cpu)}.", ""]
        pruned = {query for query in queries if _is_pruned(groups.get((query, OURS), ()))}
        if pruned and pruned != set(queries):
            few = f"Over the {len(pruned)} of them with a list: {_means(ratios[start], pruned)}; "
            lines += [f"{few}CPU time: {_means(cpu, pruned)}.", ""]
        table = _table(groups, queries, others, ratios[start], cpu, document["differing"])
        lines += [*table, ""]
    warm = _grouped(runs, "warm")
    if any(who == SWITCHED for _, who in warm):
        lines += ["## Scans", "", *_scans(warm, document["totals"]), ""]
    lines += about(document["machine"], [run["noise"] for run in runs])
    file.with_suffix(".md").write_text("\n".join(lines) + "\n")
    _plot(title, document["scale"], ratios[starts[0]], file.with_suffix(".png"))


_Groups = Mapping[tuple[int, str], Sequence[Record]]


def _grouped(runs: Sequence[Record], start: str) -> dict[tuple[int, str], list[Record]]:
    groups: dict[tuple[int, str], list[Record]] = {}
    for run in runs:
        if run["start"] == start:
            groups.setdefault((run["query"], run["contender"]), []).append(run)
    return groups


def _seconds(runs: Sequence[Record], cost: str = "seconds") -> list[float]:
    return [run["cost"][cost] for run in runs]


def _ratios(groups: _Groups, other: str, cost: str = "seconds") -> dict[int, float]:
    """By query, the other contender's median divided by ours."""
    return {
        query: median(_seconds(runs, cost)) / median(_seconds(groups[query, OURS], cost))
        for (query, who), runs in groups.items()
        if who == other and (query, OURS) in groups
    }


def _means(ratios: Mapping[str, Mapping[int, float]], among: Collection[int] = ()) -> str:
    """The geometric mean of each contender's ratios; of all queries or ``among`` some."""
    chosen = {
        name: [ratio for query, ratio in found.items() if not among or query in among]
        for name, found in ratios.items()
    }
    return ", ".join(
        f"{name} / ours {geometric_mean(found):.2f}" for name, found in chosen.items() if found
    )


def _is_pruned(runs: Sequence[Record]) -> bool:
    return any(run["kept"] for run in runs)


def _table(
    groups: _Groups,
    queries: Sequence[int],
    others: Sequence[str],
    ratios: Mapping[str, Mapping[int, float]],
    cpu: Mapping[str, Mapping[int, float]],
    differing: Sequence[int],
) -> Iterator[str]:
    head = ["query", "rows equal", *(f"{name}, s" for name in (*others, OURS))]
    head += [f"{name} / ours" for name in others]
    head += [f"CPU, {name} / ours" for name in others]
    yield table_row(head)
    yield table_row("---" if at == 1 else "---:" for at in range(len(head)))
    for query in queries:
        cells = [f"q{query:02}", "NO" if query in differing else "yes"]
        for name in (*others, OURS):
            runs = groups.get((query, name), ())
            cells.append(spread(_seconds(runs)) if runs else "")
        for found in (ratios, cpu):
            cells += [
                f"{found[name][query]:.2f}" if query in found[name] else "" for name in others
            ]
        yield table_row(cells)


def _scans(groups: _Groups, totals: Mapping[str, int]) -> Iterator[str]:
    """Counts of pairs of a query and a fact table, then one line for each pair."""
    lines = []
    both = ours_alone = spark_alone = neither = 0
    for (query, who), runs in sorted(groups.items()):
        if who != OURS or (query, SWITCHED) not in groups:
            continue
        mine, theirs = runs[0], groups[query, SWITCHED][0]
        for table, read in sorted(theirs["scans"].items()):
            here = mine["scans"].get(table, [])
            pruned = [sum(found) < len(found) * (totals[table] - _NULL) for found in (here, read)]
            pruned[0] = pruned[0] or not here
            both += all(pruned)
            ours_alone += pruned == [True, False]
            spark_alone += pruned == [False, True]
            neither += not any(pruned)
            whole = ", ".join(dict.fromkeys(mine["whole"].get(table, ())))
            kept = mine["kept"].get(table, [])
            lists = f" [{', '.join(f'{count:,}' for count in kept)}]" if kept else ""
            cells = [f"q{query:02}", table, f"{sum(here):,}{lists}", f"{sum(read):,}"]
            lines.append(table_row([*cells, f"{len(read) * totals[table]:,}", whole]))
    yield (
        f"Of {both + ours_alone + spark_alone + neither} pairs of a query and a fact table, {both} "
        f"are pruned by both, {ours_alone} here alone, {spark_alone} by Spark alone, and {neither} "
        "by neither."
    )
    yield ""
    yield table_row(["query", "table", "partitions", f"by {SWITCHED}", "of", "no list because"])
    yield table_row(["---:", "---", "---:", "---:", "---:", "---"])
    yield from lines


def _plot(title: str, scale: float, ratios: Mapping[str, Mapping[int, float]], path: Path) -> None:
    queries = sorted({query for found in ratios.values() for query in found})
    figure, axis = pyplot.subplots(figsize=(max(6, 0.18 * len(queries)), 4.5))
    for name, found in ratios.items():
        axis.plot([str(q) for q in queries], [found.get(q) for q in queries], "o", label=name)
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set(yscale="log", ylabel="times our seconds", title=f"{title} at scale {scale:g}")
    axis.tick_params(axis="x", rotation=90, labelsize=6)
    axis.grid(alpha=0.3)
    axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
