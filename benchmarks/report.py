"""Writes measured runs as a Markdown table and a plot."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

from benchmarks.contenders import CONTENDERS, FLOOR

RESULTS = Path(__file__).parent / "results"
Record = dict[str, Any]


def write_growth(runs: list[Record], machine: Record, folder: Path) -> None:
    """Writes ``growth.json``, ``growth.md`` and ``growth.png`` from the growth benchmark's runs."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "growth.json").write_text(json.dumps({"machine": machine, "runs": runs}, indent=1))
    head = (
        *("partitions", "matching", "ms a listing", "start", "contender", "seconds"),
        *("against literal list", "calls", "partitions fetched", "files listed", "listings"),
        *("kB read", "MB heap"),
    )
    lines = [table_row(head), table_row("---" if at < 5 else "---:" for at in range(len(head)))]
    groups = _grouped(runs)
    for (setting, start, contender), found in groups.items():
        floor = groups.get((setting, start, FLOOR))
        cost = found[0]["cost"]
        ratio = _median(found) / _median(floor) if floor else None
        lines.append(
            table_row(
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


def added(file: Path, runs: list[Record]) -> list[Record]:
    """``runs``, and the runs in ``file`` of other contenders and settings."""
    before = json.loads(file.read_text())["runs"] if file.exists() else []
    measured = {_what(run) for run in runs}
    return [run for run in before if _what(run) not in measured] + runs


def _what(run: Record) -> str:
    told = ("setting", "query", "start", "contender")
    return json.dumps({name: run.get(name) for name in told}, sort_keys=True)


def about(machine: Record, noise: Sequence[float]) -> list[str]:
    """The machine of the runs, and how much its speed varied."""
    return [
        f"- {machine['cores']} cores, {machine['system']}, Python {machine['python']}, "
        f"PySpark {machine['pyspark']}, airflow-hive-opt {machine['package']}",
        f"- noise: a fixed piece of work took {spread(noise)} ms beside the runs",
    ]


def spread(numbers: Sequence[float]) -> str:
    """Median, range and count: ``1.20 (1.00-1.50, 3)``."""
    return f"{median(numbers):.2f} ({min(numbers):.2f}-{max(numbers):.2f}, {len(numbers)})"


def _grouped(runs: Iterable[Record]) -> dict[tuple, list[Record]]:
    groups: dict[tuple, list[Record]] = {}
    for run in runs:
        setting = run["setting"]
        key = (setting["partitions"], setting["matching"], setting["latency"])
        groups.setdefault((key, run["start"], run["contender"]), []).append(run)
    return dict(
        sorted(groups.items(), key=lambda found: (*found[0][:2], CONTENDERS.index(found[0][2])))
    )


def _median(found: Sequence[Record]) -> float:
    return median(run["cost"]["seconds"] for run in found)


def table_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plot_growth(groups: dict[tuple, list[Record]], path: Path) -> None:
    """Plots seconds over the table's size, one panel for each start and latency."""
    fewest = min(setting[1] for setting, _, _ in groups)
    panels = sorted({(start, setting[2]) for setting, start, _ in groups}, reverse=True)
    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(5 * len(panels), 4.5), sharey=True, squeeze=False
    )
    for axis, (start, latency) in zip(axes[0], panels, strict=True):
        for contender in CONTENDERS:
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
