"""``airflow-hive-opt key-index``: builds, checks and lists indexes of key columns."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from airflow_hive_opt.commands.arguments import FAILED, UsageError, add_verbose, pairs

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from upath import UPath

    from airflow_hive_opt.key_index.indexed_column import IndexedColumn


def add(commands: Any) -> None:
    """Adds the command to the subparsers."""
    command = commands.add_parser("key-index", help="build, check or list indexes of key columns")
    kinds = command.add_subparsers(required=True, metavar="COMMAND")
    build = kinds.add_parser("build", help="build an index, or bring it up to date")
    _add_table(build)
    build.add_argument("--rebuild", action="store_true", help="read all data files again")
    build.set_defaults(run=_build)
    check = kinds.add_parser(
        "check", help="compare an index, or what a run has left out by it, with the table's rows"
    )
    _add_table(check)
    check.add_argument(
        "--descriptor", metavar="PATH", help="check also what this run has left out: a file or URI"
    )
    check.set_defaults(run=_check)
    listed = kinds.add_parser("list", help="print each index in a folder as a line of JSON")
    _add_index_path(listed)
    add_verbose(listed)
    listed.set_defaults(run=_list)


def _add_table(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "table",
        help="an Iceberg table's name on Spark, with the catalog's, or the folder of a Delta table "
        "or of a table in Iceberg's Hadoop catalog",
    )
    command.add_argument("column", help="the key column")
    _add_index_path(command)
    command.add_argument(
        "--property",
        action="append",
        default=[],
        metavar="K=V",
        help="a property of the catalog, as PyIceberg names it (default: PyIceberg's own "
        "configuration)",
    )
    add_verbose(command)


def _add_index_path(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--index-path", required=True, metavar="PATH", help="the index_path: a folder or URI"
    )


def _build(options: argparse.Namespace) -> int:
    from upath import UPath

    from airflow_hive_opt.documents.storage import DescriptorError
    from airflow_hive_opt.key_index.building import build
    from airflow_hive_opt.key_index.indexed_column import IndexingError, NotIndexable

    try:
        column = _column(options)
        built = build(UPath(options.index_path), column, options.rebuild)
    except NotIndexable as error:
        raise UsageError(str(error)) from error
    except (IndexingError, DescriptorError, ValueError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    if column.why_unused:
        print(f"warning: {column.why_unused}", file=sys.stderr)
    print(json.dumps(built.summary(), indent=1))
    print(built.headline(options.table, options.column), file=sys.stderr)
    return 0


def _check(options: argparse.Namespace) -> int:
    from upath import UPath

    from airflow_hive_opt.key_index.checked_tables import CheckedDelta, NotCheckedError
    from airflow_hive_opt.key_index.checker import problems_of_descriptor, problems_of_index

    folder = _delta_folder(options.table)
    table = _iceberg_table(options) if folder is None else CheckedDelta(folder)
    try:
        problems = problems_of_index(table, options.column, UPath(options.index_path))
        if options.descriptor is not None:
            path = UPath(options.descriptor)
            problems += problems_of_descriptor(table, options.column, path)
    except NotCheckedError as error:
        raise UsageError(str(error)) from error
    except Exception as error:  # noqa: BLE001 - of PyArrow, of PyIceberg, of the storage
        print(f"error: nothing is proved: {error}", file=sys.stderr)
        return FAILED
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems", file=sys.stderr)
    return FAILED if problems else 0


def _list(options: argparse.Namespace) -> int:
    from upath import UPath

    from airflow_hive_opt.documents.storage import DescriptorError
    from airflow_hive_opt.key_index.manifest import folders_of_indexes, read_index

    try:
        root = UPath(options.index_path)
        folders = folders_of_indexes(root) if root.is_dir() else None
    except (ValueError, ImportError) as error:
        raise UsageError(str(error)) from error
    except Exception as error:  # noqa: BLE001 - of the storage
        print(f"error: {options.index_path}: {error}", file=sys.stderr)
        return FAILED
    if folders is None:
        raise UsageError(f"there is no folder {options.index_path}")
    count = damaged = 0
    for folder in folders:
        try:
            index = read_index(root, folder.parent.name, unquote(folder.name))
        except DescriptorError as error:
            print(f"error: {folder}: {error}", file=sys.stderr)
            damaged += 1
            continue
        if index is not None:
            found = {"table": index.table, "column": index.column, "type": index.type}
            size = {"files": index.files, "keys": index.keys, "bytes": index.size}
            print(json.dumps({**found, **size, "folder": str(folder)}))
            count += 1
    print(f"{count} indexes, {damaged} damaged", file=sys.stderr)
    return FAILED if damaged else 0


def _column(options: argparse.Namespace) -> IndexedColumn:
    """The column to index; raises :class:`UsageError`, and ``IndexingError``."""
    folder = _delta_folder(options.table)
    if folder is not None:
        from airflow_hive_opt.key_index.delta import DeltaColumn
        from airflow_hive_opt.key_index.delta_log import read_log

        return DeltaColumn(read_log(options.table, folder), options.table, options.column)
    from airflow_hive_opt.key_index.iceberg import IcebergColumn

    return IcebergColumn(_iceberg_table(options), options.table, options.column)


def _delta_folder(table: str) -> UPath | None:
    """The folder of a Delta table; ``None`` for an Iceberg table. Raises :class:`UsageError`."""
    from upath import UPath

    from airflow_hive_opt.documents.storage import fsspec_uri
    from airflow_hive_opt.key_index.delta_log import folder_in, is_table, why_unreadable

    try:
        folder = UPath(fsspec_uri(folder_in(table))) if folder_in(table) else None
        is_delta = folder is not None and is_table(folder)
    except Exception as error:  # of the storage
        raise UsageError(f"can't look into {table}: {error}") from error
    if is_delta and (why := why_unreadable(table)):
        raise UsageError(why)
    return folder if is_delta else None


def _iceberg_table(options: argparse.Namespace) -> Table:
    """The table at its current snapshot; raises :class:`UsageError`."""
    from upath import UPath

    from airflow_hive_opt.documents.storage import fsspec_uri
    from airflow_hive_opt.key_index.delta_log import folder_in
    from airflow_hive_opt.metastores.iceberg.catalog import IcebergTables
    from airflow_hive_opt.metastores.lakes import CatalogError
    from airflow_hive_opt.worker.unanswered import Unanswered

    properties = pairs(options.property)
    folder = folder_in(options.table)
    try:
        client = IcebergTables(properties)
        if not folder:
            return client.load(options.table)
        from airflow_hive_opt.worker.lakes import iceberg

        found = iceberg.in_folder(options.table, folder, lambda uri: UPath(fsspec_uri(uri)))
        return found.loaded
    except (CatalogError, Unanswered) as error:
        raise UsageError(str(error)) from error
