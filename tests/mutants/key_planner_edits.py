"""Small wrong edits of what the planner does with key indexes, each with tests that notice it."""

from __future__ import annotations

from tests.mutants.wrong_edits import WrongEdit

Noticed = tuple[WrongEdit, tuple[str, ...]]
_LOCAL, _INDEXED = "spark/local_task", "restriction/indexed.py"
_FILES, _TIMES = f"{_LOCAL}/indexed_files.py", f"{_LOCAL}/partition_values.py"
_SNAPSHOTS, _BRANCH = f"{_LOCAL}/fixed_snapshots.py", "spark/map_join/branch.py"
_SEARCH = "spark/map_join/group_filter.py"
_READS, _CHANGES = "test_key_index_reads.py", "test_key_index_changes.py"
_COUNTS = f"{_READS}::test_files_are_counted_only_if_the_index_does_not_tell"
_SEARCHES = f"{_CHANGES}::test_spark_searches_for_files_unless_the_index_has_found_them"
_TABLES, _GATES = "test_narrowed_tables.py", "test_narrowed_tables_and_gates.py"


def _edit(file: str, text: str, instead: str, why: str, *tests: str) -> Noticed:
    names = tuple(f"tests/lakes/iceberg/{name}" for name in tests)
    return WrongEdit(file, text, instead, why), names


def _planned(file: str, text: str, instead: str, why: str) -> Noticed:
    return WrongEdit(f"pruning/{file}", text, instead, why), ("tests/pruning/test_hops.py",)


WITHOUT_SPARK: tuple[Noticed, ...] = (
    (
        WrongEdit(
            _FILES,
            "if _is_used(use) and not use.unknown}",
            "if _is_used(use)}",
            "ranges exclude files that the index does not cover",
        ),
        ("tests/spark/test_indexed_conditions.py",),
    ),
    _planned(
        "hops.py",
        "if plan.row_level is not None or not narrowed:",
        "if not narrowed:",
        "the target of MERGE needs exact keys",
    ),
    _planned(
        "hops.py",
        "if len(alternatives) < len(decision.alternatives):",
        "if not alternatives:",
        "a reader of a CTE without keys reads all rows",
    ),
    _planned(
        "hops.py",
        "if (sources := [source for source in each.sources if source.narrowed])",
        "if (sources := [source for source in each.sources])",
        "rows of small tables may change before the statement reads them",
    ),
    _planned(
        "rules/key_sources.py",
        "narrowed = {found for found in group if small[found].narrowed}",
        "narrowed = {*group}",
        "small tables are not held to a snapshot",
    ),
    _planned(
        "rules/key_sources.py",
        "        kept |= more\n    return (",
        "        pass\n        break\n    return (",
        "tables that are joined with each other are one source",
    ),
    _planned(
        "rules/key_sources.py",
        "tuple(found for found in inside if found.aliases <= kept)",
        "tuple(found for found in inside if not found.aliases <= kept)",
        "the conditions on the tables that are read belong to the query",
    ),
)

ON_SPARK: tuple[Noticed, ...] = (
    _edit(
        _FILES,
        "to_read = frozenset(unknown | (every & found.holding))",
        "to_read = frozenset(every & found.holding)",
        "a file that the index does not cover may hold any key",
        f"{_READS}::test_a_stale_index_loses_no_rows",
    ),
    _edit(
        _FILES,
        "unknown = every - found.covered",
        "unknown = found.covered - every",
        "files of the table that the index does not cover are unknown, not the others",
        f"{_READS}::test_a_stale_index_loses_no_rows",
    ),
    _edit(
        _FILES,
        "holding if to_read is None else to_read & holding",
        "holding if to_read is None else to_read | holding",
        "a row has keys of both columns",
        f"{_READS}::test_keys_of_two_columns_leave_the_files_that_both_indexes_leave",
    ),
    _edit(
        _FILES,
        "if keys.keys is None or not self._is_sound(keys, decision):",
        "if keys.keys is None:",
        "a changed row must have a key of the list",
        f"{_CHANGES}::test_too_many_keys_for_a_list_leave_the_index_unused",
    ),
    _edit(
        _FILES,
        "guards += _guards(each) if is_target(self._plan, relation) else ()",
        "guards += ()",
        "MERGE must fail if its source has other keys",
        f"{_CHANGES}::test_a_source_that_changes_meanwhile",
        f"{_CHANGES}::test_many_keys_of_a_merge_are_one_literal",
    ),
    _edit(
        _FILES,
        "return Indexed((*conditions, *guards), _told(uses), fixed.held, is_close, planned)",
        "return Indexed((*conditions, *guards), _told(uses), (), is_close, planned)",
        "the statement reads the snapshot of the lookup",
        _READS,
    ),
    _edit(
        _FILES,
        "if len(kept) == len(to_read) and columns",
        "if columns",
        "a file that holds no key may be left out by its lowest and highest value",
        _COUNTS,
    ),
    _edit(
        _FILES,
        "columns.issuperset(each.column for each in found)",
        "columns",
        "a condition on another column may leave out files that hold a key",
        _COUNTS,
    ),
    _edit(
        "spark/local_task/data_files.py",
        "total != self._fixed.total_bytes or not",
        "not",
        "the sizes that Iceberg counts include delete files",
        _COUNTS,
    ),
    _edit(
        "spark/local_task/data_files.py",
        " or not self._fixed.whole_partitions",
        "",
        "files of other fields are in other partitions",
        f"{_READS}::test_files_are_counted_if_partitions_have_fields_that_give_no_conditions",
    ),
    _edit(
        "spark/catalog/lakes/iceberg.py",
        "int(table.specs().size()) == 1 and table",
        "table",
        "files of an earlier spec may have other fields",
        _COUNTS,
    ),
    _edit(
        _SEARCH,
        "planned == [uses[0].files] and matches_every_key",
        "matches_every_key",
        "a file of the partitions that holds no key is not rewritten",
        f"{_SEARCHES}[an indexed file]",
    ),
    _edit(
        _SEARCH,
        "uses[0].code != IndexCode.USED or uses[0].unknown",
        "uses[0].code != IndexCode.USED",
        "a file that the index does not cover may hold no key",
        f"{_SEARCHES}[a file]",
    ),
    _edit(
        "pruning/row_level.py",
        "and plain.where is None",
        "",
        "a subquery's condition may be no part of the key query",
        f"{_SEARCHES}[no file]",
    ),
    _edit(
        _TIMES,
        "or_null=None in values,",
        "or_null=False,",
        "files without a value of the partition are read too",
        f"{_READS}::test_a_stale_index_loses_no_rows",
        "test_key_index_times.py",
    ),
    _edit(
        _TIMES,
        "end = _start(value + 1, transform)",
        "end = _start(value, transform)",
        "a period goes up to the next one",
        "test_key_index_times.py::test_the_periods_of_the_files_become_ranges",
    ),
    _edit(
        _TIMES,
        "(end - timedelta(days=1)).date()",
        "(end - timedelta(days=2)).date()",
        "the last day of a month belongs to it",
        "test_key_index_times.py",
    ),
    _edit(
        _TIMES,
        "for both in joined(sorted(ranges))",
        "for both in sorted(ranges)[:1]",
        "every period of a file with a key is read",
        "test_key_index_times.py::test_the_periods_of_the_files_become_ranges",
    ),
    _edit(
        _SNAPSHOTS,
        "if not reads_current_metadata(session):",
        "if not session:",
        "cached rows and branches have no snapshot of the table",
        f"{_READS}::test_cached_rows_and_branches_leave_the_index_unused",
    ),
    _edit(
        _SNAPSHOTS,
        "if _may_write(session, catalog, plan, table, id_):",
        "if False:",
        "a statement that writes the table must read what it is when it runs",
        f"{_READS}::test_a_statement_that_also_writes_the_table_does_not_use_the_index",
    ),
    _edit(
        _SNAPSHOTS,
        "compared = 1 if found is None else 2",
        "compared = 1",
        "a table of the same name in another database is another table",
        f"{_READS}::test_a_table_of_the_same_name_elsewhere_can_be_written",
    ),
    _edit(
        _SNAPSHOTS,
        'if table.name.startswith(f"{name}."):',
        "if False:",
        "a table's metadata says that there is a branch",
        f"{_READS}::test_a_delete_that_reads_the_tables_metadata_does_not_use_the_index",
    ),
    _edit(
        _SNAPSHOTS,
        "if table is None or is_view(table):",
        "if table is None:",
        "a view reads its tables without their version",
        f"{_READS}::test_a_view_leaves_the_index_unused",
    ),
    _edit(
        _SNAPSHOTS,
        "most -= table.name == name",
        "most -= table.name != table.name",
        "a second place reads the table at another snapshot",
        f"{_CHANGES}::test_statements_that_run_on_no_branch",
    ),
    _edit(
        _SNAPSHOTS,
        '.lower() == "true"',
        '.lower() == "yes"',
        "a table with staged writes has no branch",
        f"{_CHANGES}::test_statements_that_run_on_no_branch",
    ),
    _edit(
        _BRANCH,
        "        end = int(branch.snapshotId())\n        if _current(table) != self._start:",
        "        end = int(branch.snapshotId())\n        if False:",
        "Iceberg puts the rows into a table that was replaced",
        "test_key_index_branches.py::test_a_writer_that_replaces_the_table_meanwhile",
    ),
    _edit(
        _BRANCH,
        "if end != self._start and table.snapshot(end).parentId() != self._start:",
        "if end != self._start and table.snapshot(end) is None:",
        "a branch that somebody removed was made again elsewhere",
        f"{_CHANGES}::test_a_branch_that_somebody_removes_before_another_change_is_undone",
    ),
    _edit(
        _INDEXED,
        "if use.scan.table not in gone and not gone.isdisjoint(use.snapshots)",
        "if use.scan.table not in gone and not use.snapshots",
        "keys of a table that has changed lead to other files",
        f"{_GATES}::test_a_table_that_changes_between_two_tasks_ends_the_hops_that_depend_on_it",
    ),
    _edit(
        f"{_LOCAL}/narrowed_tables.py",
        "(*descriptor.held_scans, *indexed.held, *held)",
        "(*descriptor.held_scans, *indexed.held)",
        "the statement reads the tables of the keys at their snapshots",
        _TABLES,
        f"{_GATES}::test_rows_that_come_after_the_keys_are_not_read",
    ),
    _edit(
        f"{_LOCAL}/table_parts.py",
        'text = " AND ".join(f"({condition})" for condition in conditions)',
        'text = " AND NOT ".join(f"({condition})" for condition in conditions)',
        "all conditions hold for the part",
        _TABLES,
        "test_narrowed_tables_fuzz.py",
    ),
    _edit(
        f"{_LOCAL}/table_parts.py",
        'version = f"VERSION AS OF {int(fixed.snapshot)}"',
        'version = ""',
        "keys of the rows that the statement reads",
        _GATES,
    ),
)
