"""Key tuples in a document: texts, which become values by the types of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from airflow_hive_opt.metastores.partitions import Value, typed
from airflow_hive_opt.statement.types import TIMESTAMP, family
from airflow_hive_opt.statement.zip_strict import zip_strict


@dataclass(frozen=True)
class KeyTuples:
    """The distinct values that keys have for some partition columns.

    ``values`` has a list of texts for each of ``columns``. All lists have the same length: their
    values at one position are one tuple. A TIMESTAMP of a table that keeps its own list of files is
    the number of microseconds since 1970 in UTC.
    """

    columns: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, columns: Iterable[str], tuples: Iterable[Sequence[Value]]) -> KeyTuples:
        """The given tuples in order; those of a set are sorted, so a document is reproducible."""
        names = tuple(columns)
        rows = sorted(tuples) if isinstance(tuples, frozenset) else list(tuples)
        values = zip(*rows) if rows else ((),) * len(names)
        return cls(names, tuple(tuple(map(str, column)) for column in values))

    def tuples(self, types: Sequence[str], of_lake: bool = False) -> tuple[tuple[Value, ...], ...]:
        """The tuples as values of ``types``, the types of ``columns``.

        ``of_lake`` says that the table keeps its own list of files. Raises ``ValueError`` for a
        text that is no such value.
        """
        if not len(self.columns) == len(self.values) == len(types):
            raise ValueError("there is not one list of values for each column")
        if len(set(map(len, self.values))) > 1:
            raise ValueError("there is not one value for each column")
        columns = (_values(*each, of_lake) for each in zip_strict(self.values, types))
        return tuple(zip(*columns))


def _values(texts: Sequence[str], type_: str, of_lake: bool) -> Sequence[Value]:
    if of_lake and type_ == TIMESTAMP:
        return list(map(int, texts))
    if type_ == "string":
        return texts
    found: list[Value] = []
    for text in texts:
        value = typed(text, type_)
        if value is None or family(type_) is None:  # no keys of other types are compared as values
            raise ValueError(f"a value is no {type_}: {text[:50]!a}")
        found.append(value)
    return found
