"""Measured runs as a Markdown table and a plot."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

RESULTS = Path(__file__).parent / "results"
Record = dict[str, Any]


def write_growth(runs: list[Record], machine: Record, folder: Path) -> None:
    """``growth.json``, ``growth.md`` and ``growth.png`` of the growth benchmark's runs."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "growth.json").write_text(json.dumps({"machine": machine, "runs": runs}, indent=1))
    head = (
        *("partitions", "matching", "ms a listing", "start", "contender", "seconds"),
        *("against literal list", "calls", "partitions fetched", "files listed", "listings"),
        *("kB read", "MB heap"),
    )
    lines = [_row(head), _row("---" if at < 5 else "---:" for at in range(len(head)))]
    groups = _grouped(runs)
    for (setting, start, contender), found in groups.items():
        floor = groups.get((setting, start, "literal list"))
        cost = found[0]["cost"]
        ratio = _median(found) / _median(floor) if floor else None
        lines.append(
            _row(
                (
                    *(f"{number:,}" for number in setting),
                    start,
                    contender,
                    spread([run["cost"]["seconds"] for run in found]),
                    f"{ratio:.2f}" if ratio else "",
                    *(
                        f"{cost[name]:,}"
                        for name in (
                            "metastore_calls",
                            "partitions_fetched",
                            "files_listed",
                            "directories_listed",
                        )
                    ),
                    f"{cost['bytes_read'] / 1000:,.0f}",
                    f"{max(run['cost']['peak_heap'] for run in found) / 1e6:,.0f}",
                )
            )
        )
    sessions = [run["session"] for run in runs if run["start"] == "cold"]
    text = [
        "# Growth: does cost follow the matching partitions, or the table?",
        "",
        "Median seconds, with the range and the number of runs. Warm: one session, every contender "
        "run before, Spark's cached listings dropped before each run. Cold: a fresh JVM, whose "
        "start is not counted.",
        "",
        *lines,
        "",
        *about(machine, [run["noise"] for run in runs]),
    ]
    if sessions:
        text.append(f"- starting Spark, cold: {spread(sessions)} s")
    (folder / "growth.md").write_text("\n".join(text) + "\n")
    _plot_growth(groups, folder / "growth.png")


def about(machine: Record, noise: Sequence[float]) -> list[str]:
    """Where it was measured, and how quiet it was there."""
    return [
        f"- {machine['cores']} cores, {machine['system']}, Python {machine['python']}, "
        f"PySpark {machine['pyspark']}, airflow-hive-opt {machine['package']}",
        f"- noise: a fixed piece of work took {spread(noise)} ms beside the runs",
    ]


def spread(numbers: Sequence[float]) -> str:
    """Median, range and count: ``1.20 (1.00-1.50, 3)``.

    >>> spread([1.0, 1.5, 1.2])
    '1.20 (1.00-1.50, 3)'
    """
    return f"{median(numbers):.2f} ({min(numbers):.2f}-{max(numbers):.2f}, {len(numbers)})"


def _grouped(runs: Iterable[Record]) -> dict[tuple, list[Record]]:
    groups: dict[tuple, list[Record]] = {}
    for run in runs:
        setting = run["setting"]
        key = (setting["partitions"], setting["matching"], setting["latency"])
        groups.setdefault((key, run["start"], run["contender"]), []).append(run)
    return groups


def _median(found: Sequence[Record]) -> float:
    return median(run["cost"]["seconds"] for run in found)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plot_growth(groups: dict[tuple, list[Record]], path: Path) -> None:
    """Seconds over the table's size, one panel for each start and latency."""
    fewest = min(setting[1] for setting, _, _ in groups)
    panels = sorted({(start, setting[2]) for setting, start, _ in groups}, reverse=True)
    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(5 * len(panels), 4.5), sharey=True, squeeze=False
    )
    for axis, (start, latency) in zip(axes[0], panels, strict=True):
        for contender in dict.fromkeys(name for _, _, name in groups):
            points = sorted(
                (setting[0], found)
                for (setting, how, name), found in groups.items()
                if (how, name, setting[1], setting[2]) == (start, contender, fewest, latency)
            )
            if not points:
                continue
            middle = [_median(found) for _, found in points]
            seconds = [[run["cost"]["seconds"] for run in found] for _, found in points]
            below = [at - min(all_) for at, all_ in zip(middle, seconds, strict=True)]
            above = [max(all_) - at for at, all_ in zip(middle, seconds, strict=True)]
            sizes = [size for size, _ in points]
            axis.errorbar(
                sizes, middle, yerr=(below, above), marker="o", capsize=3, label=contender
            )
        axis.set(yscale="log", xlabel="partitions of the table")
        if len({setting[0] for setting, _, _ in groups}) > 1:
            axis.set_xscale("log")
        axis.set_title(f"{start}, {f'{latency} ms a listing' if latency else 'local disk'}")
        axis.grid(alpha=0.3, which="both")
    axes[0][0].set_ylabel("seconds")
    axes[0][0].legend()
    figure.suptitle(f"{fewest:,} partitions match")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
