"""The protocol of clients that tell which required partitions a lake table lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from airflow_hive_opt.metastores.required import Required, Tuples


class CatalogError(Exception):
    """The catalog or the storage does not answer, or one of its tables can't be read.

    The message is one line without secrets.
    """


@dataclass(frozen=True)
class Absent:
    """The required tuples that a table does not have; ``note`` says why it has none at all."""

    tuples: Tuples
    note: str = ""


class LakeClient(Protocol):
    """The tables of one format."""

    def absent(self, required: Required) -> Absent:
        """The required tuples that the table does not have now; raises :class:`CatalogError`."""

    def close(self) -> None:
        """Closes connections; the next call opens new ones."""
