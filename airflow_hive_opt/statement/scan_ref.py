"""Identifies the scans of a statement: an alias may name several of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class ScanRef:
    """One scan: a place where a statement names a table or a view.

    - ``alias`` is its alias in lower case, or the table's name without one. UNION, CTEs and
      subqueries may repeat it.
    - ``table`` is the table that the scan reads, ``database.table``, also below a view.
    - ``reference`` is the position of the name in the statement, start and stop in characters;
      ``None`` if the planner does not know it.
    - ``name`` is for people: the alias, and if the statement repeats it, the line.
    """

    alias: str
    table: str
    reference: Optional[tuple[int, int]]
    name: str

    @property
    def position(self) -> tuple[int, int]:
        """The reference; raises ``ValueError`` if it is not known."""
        if self.reference is None:
            raise ValueError(f"the position of the scan {self.name} is not known")
        return self.reference

    @property
    def short_name(self) -> str:
        """The table's name without its database."""
        return self.table.rpartition(".")[2]

    def to_json(self) -> dict[str, object]:
        """Plain values, for a run's summary and for EXPLAIN."""
        reference = None if self.reference is None else list(self.reference)
        return {"scan": self.name, "alias": self.alias, "table": self.table, "reference": reference}


def scan_names(sql: str, scans: Collection[tuple[str, int]]) -> dict[int, str]:
    r"""A name for each scan that no other scan of the statement has.

    ``scans`` has pairs of an alias and the start of its reference. The result is by these starts.
    A name depends on lines, not on columns: it stays the same if a date gets longer.

    >>> sql = "SELECT 1 FROM f, d UNION ALL\nSELECT 1 FROM f, g WHERE k IN (SELECT k FROM g)"
    >>> list(scan_names(sql, [("f", 14), ("d", 17), ("f", 43), ("g", 46), ("g", 75)]).values())
    ['f (line 1)', 'd', 'f (line 2)', 'g (line 2, no. 1)', 'g (line 2, no. 2)']
    """
    repeated = Counter(alias for alias, _ in scans)
    lines, line, at = {}, 1, 0
    for alias, start in sorted(scans, key=lambda scan: scan[1]):
        line += sql.count("\n", at, start)
        at = start
        lines[start] = alias, line
    on_the_line = Counter(lines.values())
    numbers: Counter[tuple[str, int]] = Counter()
    names = {}
    for start, place in lines.items():
        alias, line = place
        numbers[place] += 1
        number = f", no. {numbers[place]}" if on_the_line[place] > 1 else ""
        names[start] = f"{alias} (line {line}{number})" if repeated[alias] > 1 else alias
    return names
