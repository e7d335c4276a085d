"""The table formats that keep their own list of files, by the names that Spark gives as provider.

The metastore may have partitions of such a table, but Spark does not read them: the table's own
list may have files of further partitions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

ICEBERG = "iceberg"
DELTA = "delta"
HUDI = "hudi"

WAP_BRANCH = "spark.wap.branch"
WAP_ID = "spark.wap.id"
"""Settings of a session whose writes to Iceberg tables are published later."""

ICEBERG_METADATA = re.compile(
    r"(all_)?(data_files|delete_files|entries|files|manifests)|history|metadata_log_entries|"
    r"partitions|position_deletes|refs|snapshots|changes"
)
"""The last parts of the names of a table's metadata, such as ``lake.shop.orders.files``."""


@dataclass(frozen=True)
class LakeRules:
    """What the planner and the sensors may do with the tables of a format.

    ``not_planned`` has the kinds of statements that pass through, MERGE, UPDATE or DELETE, each
    with the reason. ``has_client`` says whether a sensor can look up partitions: whether there is a
    :class:`~airflow_hive_opt.metastores.lakes.LakeClient` of the format. ``indexable`` says whether
    a column can have a key index: whether data files never change under their names.
    """

    not_planned: Mapping[str, str] = field(default_factory=dict)
    has_client: bool = True
    indexable: bool = True


LAKE_FORMATS = {
    ICEBERG: LakeRules(),
    DELTA: LakeRules(
        not_planned={
            kind: f"Delta accepts no subquery in {kind}, so no other table gives keys"
            for kind in ("UPDATE", "DELETE")
        },
    ),
    # A table with a record key checks ON when MERGE runs, and fails for anything but equalities.
    HUDI: LakeRules(
        not_planned={
            "MERGE": "Hudi finds a MERGE's rows by record key with its own index, and accepts only "
            "equalities in ON, so no keys are added there"
        },
        has_client=False,
        indexable=False,
    ),
}


def is_indexable(provider: str) -> bool:
    """Whether the columns of a format's tables can have key indexes.

    >>> is_indexable(DELTA), is_indexable(HUDI), is_indexable("")
    (True, False, False)
    """
    rules = LAKE_FORMATS.get(provider)
    return rules is not None and rules.indexable
