"""Leaves out Spark's search for the files to rewrite if a key index has found them.

A copy-on-write MERGE, UPDATE or DELETE reads its target twice. First, Spark's runtime group filter
finds the files that have rows for which the condition is true. Then Spark reads these files whole
and writes them again. If each file that the conditions leave holds a key, the first read finds all
of them. Only a file whose rows with the keys have been deleted by a delete file, or whose keys the
source has no more, is rewritten although the first read would have left it out.
"""

from __future__ import annotations

from collections.abc import Mapping

from airflow_hive_opt.documents.descriptor import Descriptor
from airflow_hive_opt.documents.indexed_scans import IndexCode
from airflow_hive_opt.pruning.row_level import matches_every_key
from airflow_hive_opt.restriction.indexed import filters_of_changes

GROUP_FILTER = "spark.sql.optimizer.runtime.rowLevelOperationGroupFilter.enabled"


def settings_of(sql: str, descriptor: Descriptor) -> Mapping[str, str]:
    """The settings with which Spark plans and runs the statement ``sql`` with these conditions."""
    return {GROUP_FILTER: "false"} if _finds_all(sql, descriptor) else {}


def _finds_all(sql: str, descriptor: Descriptor) -> bool:
    """Whether each file that the target's scan reads holds a row that meets the condition."""
    filters = filters_of_changes(descriptor)
    if not filters:
        return False
    scan = filters[0].scan
    uses = [use for use in descriptor.index_uses if use.scan == scan]
    planned = [found.files for found in descriptor.planned_files if found.scan == scan]
    if len(uses) != 1 or uses[0].code != IndexCode.USED or uses[0].unknown:
        return False
    return planned == [uses[0].files] and matches_every_key(sql, uses[0].column)
