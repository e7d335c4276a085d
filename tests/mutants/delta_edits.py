"""Wrong edits of what is known of Delta tables, each with the tests that must notice it.

Those in ``ON_SPARK`` need Delta's jars: ``make test-mutants`` leaves them out, and
``pytest -s -m mutants tests/lakes/delta`` runs them in the environment of a line of Spark.
"""

from __future__ import annotations

from tests.mutants.wrong_edits import WrongEdit, edits

LOG_TESTS = ("tests/metastores/test_delta_tables.py",)
IN_THE_LOG = edits(
    "metastores/delta.py",
    (
        "if known is not None and known[0] == version:",
        "if known is not None and known[0][1] == version[1]:",
        "another table at the same place begins with the same version",
    ),
    (
        "    if stored not in expected:",
        "    if False:",
        "a text is never equal to a date, so the sensor would wait for ever",
    ),
    (
        "    if field is None or name not in partitioned:",
        "    if field is None:",
        "the log has no partition values of a data column",
    ),
    (
        "        except TableNotFoundError:",
        "        except ZeroDivisionError:",
        "a table that is not there yet is waited for",
    ),
)

_DELTA = "spark/catalog/lakes/delta.py"
READS, CHANGES, COLUMNS, COUNTED, SNAPSHOTS, INDEX_CHANGES = (
    f"tests/lakes/delta/test_{name}.py"
    for name in ("reads", "changes", "columns", "counted_files", "snapshots", "key_index_changes")
)
ON_SPARK: tuple[tuple[WrongEdit, str, str], ...] = tuple(
    (edit, file, words)
    for (edit,), file, words in (
        (
            edits(
                _DELTA,
                (
                    "        if not loaded.tableExists():  # a path without a table",
                    "        if False:",
                    "a path without a table is a table without columns",
                ),
            ),
            READS,
            "path_that_is_no_table",
        ),
        (
            edits(
                _DELTA,
                (
                    "MOST_VALUES if column in table.partitioned_by else 1",
                    "MOST_VALUES",
                    "Delta makes one range of a list on a data column",
                ),
            ),
            READS,
            "scattered_keys",
        ),
        (
            edits(
                _DELTA,
                ('return " AND ".join(', 'return " OR ".join(', "all conditions hold together"),
            ),
            READS,
            "rows_and_files and by_name",
        ),
        (
            edits(
                _DELTA,
                (
                    'if leaf.getClass().getSimpleName() == "LocalRelation":',
                    "if False:",
                    "a condition that is never true leaves no scan",
                ),
            ),
            READS,
            "no_key_matches",
        ),
        (
            edits(
                _DELTA,
                (
                    "(*partitioned, *clustered, *sources)",
                    "(*partitioned, *clustered)",
                    "Delta derives partitions from the columns of their expression",
                ),
            ),
            COLUMNS,
            "generated_partition",
        ),
        (
            edits(
                _DELTA,
                (
                    "        if len(names) == 1:",
                    "        if names:",
                    "a field of a struct is no column of its name",
                ),
            ),
            COLUMNS,
            "nested_columns",
        ),
        (
            edits(
                _DELTA,
                (
                    "snapshot.statCollectionLogicalSchema()",
                    "snapshot.schema()",
                    "without statistics a condition skips no file",
                ),
            ),
            COLUMNS,
            "columns_without_statistics",
        ),
        (
            edits(
                "restriction/row_changes.py",
                (
                    "    if not guard:",
                    "    if True:",
                    "a new key of the source would be inserted twice",
                ),
            ),
            CHANGES,
            "source_that_changes_between",
        ),
        (
            edits(
                "spark/map_join/planned_scans.py",
                (
                    "    if conditions is None or len(conditions) != len(filters):",
                    "    if conditions is None:",
                    "a plan with more conditions has fewer files than the keys leave",
                ),
            ),
            COUNTED,
            "those_of_the_keys_alone",
        ),
        (
            edits(
                "spark/map_join/planned_scans.py",
                (
                    "    if len(chosen) == 1:",
                    "    if chosen:",
                    "the first of two scans would stand for both",
                ),
            ),
            COUNTED,
            "look_the_same",
        ),
        (
            edits(
                "spark/local_task/scans_of_plan.py",
                (
                    "not hand_over and job.gates == Gates() and",
                    "not hand_over and",
                    "a gate would see no numbers",
                ),
            ),
            COUNTED,
            "gate_counts",
        ),
        (
            edits(
                "spark/local_task/lake_scans.py",
                (
                    "        and len(found.values) <= FEW_VALUES",
                    "",
                    "a long list would stay although it leaves all files",
                ),
            ),
            COUNTED,
            "many_values",
        ),
        (
            edits(
                "spark/application/handed_over.py",
                (
                    "(now.snapshot, now.table_id) != (then.snapshot, then.table_id):",
                    "now.snapshot != then.snapshot:",
                    "a table that is made again has the same versions, with keys in other files",
                ),
            ),
            INDEX_CHANGES,
            "made_again_between",
        ),
        (
            edits(
                "spark/application/handed_over.py",
                (
                    "if now is not None and now.table_id != found.table_id:",
                    "if False:",
                    "a version is read that is not the one of the keys",
                ),
            ),
            SNAPSHOTS,
            "made_again",
        ),
        (
            edits(
                "spark/catalog/lakes/delta_files.py",
                (
                    'each["metadata"][_PHYSICAL] if is_mapped else each["name"]',
                    'each["name"]',
                    "the log and the index have the names in the files",
                ),
            ),
            INDEX_CHANGES,
            "other_names_in_the_files or dropped_and_added",
        ),
        (
            edits(
                "spark/catalog/lakes/delta_files.py",
                (
                    "unquote(row[0]): DataFile(",
                    "row[0]: DataFile(",
                    "the log writes paths as URIs",
                ),
            ),
            INDEX_CHANGES,
            "any_values and string",
        ),
        (
            edits(
                "spark/catalog/lakes/delta.py",
                (
                    "if each.name in table.partitioned_by and family(each.type) is not None",
                    "if each.name in table.partitioned_by",
                    "Delta writes a partition's time in the time zone of its writer",
                ),
            ),
            INDEX_CHANGES,
            "days_of_timestamps",
        ),
        (
            edits(
                "spark/local_task/fixed_snapshots.py",
                (
                    "        if not indexed.has_branches:",
                    "        if False:",
                    "a Delta table has no branches",
                ),
            ),
            INDEX_CHANGES,
            "merge_into_the_table",
        ),
        (
            edits(
                "spark/local_task/fixed_snapshots.py",
                (
                    "if now is None or not _is_as_planned(table.scanned, now):",
                    "if now is None:",
                    "a column that is no partition column any more has no values in the log",
                ),
            ),
            INDEX_CHANGES,
            "partitions_that_change",
        ),
        (
            edits(
                "spark/local_task/fixed_snapshots.py",
                (
                    "if table_id and found is not None and found.provider == table.provider:",
                    "if False:",
                    "a path and a name may be of one table",
                ),
            ),
            INDEX_CHANGES,
            "by_its_path_is_not_held",
        ),
        (
            edits(
                "spark/local_task/lake_scans.py",
                (
                    "except Exception as error:",
                    "except ValueError as error:",
                    "an index must not fail a run",
                ),
            ),
            INDEX_CHANGES,
            "error_of_any_class",
        ),
        (
            edits(
                "spark/catalog/lakes/delta_files.py",
                (
                    "    if str(snapshot.metadata().id()) != table_id:",
                    "    if False:",
                    "another table has the same numbers of versions",
                ),
            ),
            INDEX_CHANGES,
            "version_are_listed",
        ),
    )
)
