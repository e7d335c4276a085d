"""How the files of a table or partition are read, as a metastore describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Storage:
    """Where the files of a table or of one of its partitions lie, and their format.

    - ``location`` is the URI of the folder.
    - ``format`` is the one that Spark reads the files as: ``parquet``, ``orc``, ``text`` (Hive's,
      with separators), ``csv`` (Spark's own reader) or another provider's name. It is empty if it
      is not known.
    - ``serde`` is the class name of the SerDe, empty for a table of Spark's own.
    - ``properties`` are those of the SerDe, or the options of Spark's own reader, with their names
      in lower case.
    - ``parameters`` are those of the table, as in the metastore.
    """

    location: str
    format: str
    serde: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
