"""Small wrong edits of Iceberg's rules, each with tests on real tables that notice it."""

from __future__ import annotations

from tests.mutants.wrong_edits import WrongEdit

Noticed = tuple[WrongEdit, tuple[str, ...]]
BRANCH = "a branch has other files than the table"
_LAKES, _LOCAL, _RESTRICTION = "spark/catalog/lakes", "spark/local_task", "restriction"


def _edit(file: str, text: str, instead: str, why: str, *tests: str) -> Noticed:
    names = tuple(f"tests/lakes/iceberg/{name}" for name in tests)
    return WrongEdit(file, text, instead, why), names


ON_SPARK: tuple[Noticed, ...] = (
    _edit(
        f"{_LAKES}/iceberg.py",
        "    if loaded.branch() is not None:\n        return True\n",
        "",
        BRANCH,
        "test_files.py::test_files_of_a_branch_are_not_counted",
        "test_listed_keys.py::test_keys_of_a_branch_come_from_rows",
    ),
    _edit(
        f"{_LAKES}/iceberg.py",
        "own.lower() != place.name.lower()",
        "own.lower() == place.name.lower()",
        "a tag has other files than the table, and can't be named with a second version",
        "test_versions_of_tables.py::test_a_join_with_a_branch_or_tag_is_restricted",
    ),
    _edit(
        f"{_LAKES}/iceberg.py",
        "_is_a_version(place, loaded) or bool(session.conf.get(WAP_BRANCH, None))",
        "_is_a_version(place, loaded)",
        "a session with spark.wap.branch reads the branch",
        "test_snapshots.py::test_a_session_that_reads_a_branch_holds_no_snapshot",
    ),
    _edit(
        f"{_LAKES}/iceberg.py",
        "iceberg.currentSnapshot().schemaId() == iceberg.schema().schemaId()",
        "iceberg.currentSnapshot().snapshotId() > 0",
        "read at its snapshot, a table has the columns that it had then",
        "test_snapshots.py::test_the_log_says_why_a_table_is_not_held_to_its_snapshot",
    ),
    _edit(
        f"{_LAKES}/iceberg.py",
        "        if place.is_dotted or is_instance_of(",
        "        if is_instance_of(",
        "a name with a dot is that of another table",
        "test_versions_of_tables.py::test_a_table_with_a_dot_in_its_name_is_left_whole",
    ),
    _edit(
        f"{_LAKES}/iceberg.py",
        "org.apache.iceberg.BaseMetadataTable",
        "org.apache.iceberg.BaseTransaction",
        "tables such as snapshots have no data files",
        "test_reads.py::test_a_metadata_table_as_key_source_changes_no_rows",
        "test_versions_of_tables.py::test_metadata_tables_are_left_whole",
    ),
    _edit(
        f"{_LAKES}/iceberg_files.py",
        "        return False\n    if not found.is_range",
        "        return True\n    if not found.is_range",
        "without keys no file is read",
        "test_files.py",
    ),
    _edit(
        f"{_LAKES}/iceberg_files.py",
        "if table.specs().size() == 1:",
        "if True:",
        "files of an earlier spec have no partition of the current one",
        "test_files.py::test_files_are_counted_after_the_partition_spec_changed",
    ),
    _edit(
        "metastores/iceberg/layout.py",
        'each["transform"] == "identity"',
        'each["transform"] != "void"',
        "a transform's value is not the column's",
        "test_listed_keys.py::test_keys_of_a_transformed_column_come_from_rows",
    ),
    _edit(
        "metastores/iceberg/layout.py",
        'if each.get("source-id") in names and all(_has(one, each) for one in specs)',
        'if each.get("source-id") in names and _has(spec, each)',
        "files of an earlier spec have no value of the column in the list of partitions",
        "test_listed_keys.py::test_keys_of_a_column_that_was_partitioned_later_come_from_rows",
    ),
    _edit(
        f"{_LOCAL}/listed_keys.py",
        "is_remote(session) or session.conf.get(WAP_BRANCH, None)",
        "is_remote(session)",
        "the list of partitions is that of the main branch",
        "test_listed_keys.py::test_keys_come_from_rows_if_the_session_reads_a_branch",
    ),
    _edit(
        f"{_LOCAL}/listed_keys.py",
        "return bool(state.cacheManager().isEmpty())",
        "return True",
        "cached rows may be older than the list of partitions",
        "test_listed_keys.py::test_keys_of_a_cached_table_come_from_rows",
    ),
    _edit(
        f"{_LOCAL}/value_lists.py",
        "(apart[start][0], apart[stop - 1][1])",
        "(apart[start][0], apart[stop - 1][0])",
        "a range ends with the highest value of its last part",
        "test_reads.py::test_too_many_keys_become_one_range",
    ),
    _edit(
        f"{_RESTRICTION}/row_changes.py",
        '            yield Edit(Span(clause.at, clause.at), f" AND {guard}")',
        "            continue",
        "a row whose key was not read would be inserted twice",
        "test_changes.py::test_a_new_key_of_the_source_makes_merge_run_again_as_plain_spark",
    ),
)
