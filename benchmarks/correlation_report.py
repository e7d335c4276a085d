"""Stores the correlation benchmark's results part by part and writes them as Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from benchmarks.report import Record, about, spread

_NAME = "correlation"


def keep(run: Record, machine: Record, folder: Path) -> None:
    """Writes ``correlation.json`` and ``correlation.md``; a new run replaces an earlier one."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{_NAME}.json"
    before = json.loads(path.read_text())["runs"] if path.exists() else []
    runs = {_key(each): each for each in [*before, run]}
    kept = [runs[key] for key in sorted(runs, key=lambda key: (key[0], key[4], *key[1:4]))]
    path.write_text(json.dumps({"machine": machine, "runs": kept}, indent=1))
    (folder / f"{_NAME}.md").write_text(tell(kept, machine))


def tell(runs: list[Record], machine: Record) -> str:
    """The report's Markdown text."""
    text = ["# Correlated queries, rewritten beside plain Spark", ""]
    text += [
        "Median seconds in a warm session, with the range and the number of runs; plain and "
        "rewritten alternate. *ratio*: rewritten over plain, by the clock and by the JVM's "
        "processor time; 1 where the statement is not rewritten. Key columns have statistics. "
        "Shuffles are those by key.",
        "",
    ]
    for scale, mode in dict.fromkeys((run["scale"], run["mode"]) for run in runs):
        mine = [run for run in runs if (run["scale"], run["mode"]) == (scale, mode)]
        text += [f"## Scale {scale}, hive.optimize.correlation = {mode}", ""]
        text += [*_summary(mine), ""]
        head = ("query", "adaptive", "joins", "rewriting", "plain, s", "rewritten, s", "ratio")
        head += ("processor", "shuffles", "scans", "MB shuffled", "rows equal")
        text += [_row(head), _row("---" if at < 4 else "---:" for at in range(len(head)))]
        text += [*map(_line, mine), ""]
    text += about(machine, [run["noise"] for run in runs])
    return "\n".join(text) + "\n"


def ratio(run: Record, measure: str = "seconds") -> float:
    """The median of the rewritten runs divided by that of the plain runs; 1 if not rewritten."""
    found = run[measure]
    return median(found["rewritten"]) / median(found["plain"]) if "rewritten" in found else 1.0


def _summary(runs: list[Record]) -> list[str]:
    lines = [f"- rows equal: {'yes' if all(run['same_rows'] for run in runs) else 'NO'}"]
    groups = {"all": runs, "rewritten": [run for run in runs if run["applied"]]}
    for name in dict.fromkeys(run["query"] for run in runs):
        groups[name] = [run for run in runs if run["query"] == name]
    for name, found in groups.items():
        if found:
            ratios = [ratio(run) for run in found]
            lines.append(f"- {name}: median ratio {median(ratios):.2f}, worst {max(ratios):.2f}")
    return lines


def _line(run: Record) -> str:
    plain, other = run["work"]["plain"], run["work"].get("rewritten")
    seconds = run["seconds"]

    def change(name: str, scale: float = 1, form: str = "d") -> str:
        before = f"{plain[name] / scale:{form}}" if scale != 1 else f"{plain[name]}"
        if other is None:
            return before
        after = f"{other[name] / scale:{form}}" if scale != 1 else f"{other[name]}"
        return f"{before} → {after}"

    return _row(
        (
            run["query"],
            "on" if run["adaptive"] else "off",
            "broadcast" if run["broadcast"] else "shuffle",
            ", ".join(run["applied"]) or "none",
            spread(seconds["plain"]),
            spread(seconds["rewritten"]) if other else "",
            f"{ratio(run):.2f}",
            f"{ratio(run, 'cpu'):.2f}",
            change("shuffles"),
            change("scans"),
            change("shuffled_bytes", 1e6, ".1f"),
            "yes" if run["same_rows"] else "NO",
        )
    )


def _key(run: Record) -> tuple[str, str, str, str, str]:
    return (
        run["scale"],
        run["query"],
        "a" if run["adaptive"] else "b",
        "a" if run["broadcast"] else "b",
        run["mode"],
    )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
