"""PyArrow: a dataset of the partitions to read, and an expression for other datasets."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.engines.conditions import (
    And,
    Condition,
    IsBetween,
    IsIn,
    Or,
    condition_of,
)
from airflow_hive_opt.engines.files import ListedFile, OpenPath, files_of, open_uri
from airflow_hive_opt.engines.installed import check_installed
from airflow_hive_opt.engines.scan import EngineError, PrunedScan
from airflow_hive_opt.engines.values import DECIMAL

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds


def dataset(
    scan: PrunedScan, open_path: OpenPath = open_uri, file_format: str = "parquet"
) -> ds.FileSystemDataset:
    """A dataset of the partitions to read alone, with the partition columns.

    ``file_format`` is ``parquet`` or ``orc``. A TIMESTAMP column is an instant in UTC. Raises
    :class:`~airflow_hive_opt.engines.scan.EngineError`.
    """
    check_installed("pyarrow")
    import pyarrow as pa
    import pyarrow.dataset as ds

    format_: Any = {"parquet": ds.ParquetFileFormat, "orc": ds.OrcFileFormat}[file_format]()
    columns = [
        pa.field(name, _arrow_type(type_))
        for name, type_ in zip(scan.columns, scan.types, strict=True)
    ]
    listed = files_of(scan, open_path)
    systems: dict[int, Any] = {}
    fragments = [
        format_.make_fragment(
            file.path,
            filesystem=systems.setdefault(id(file.file_system), _file_system(file)),
            partition_expression=_values_of(file, columns),
        )
        for file in listed.with_columns
    ]
    schemas = [fragment.physical_schema for fragment in fragments]
    return ds.FileSystemDataset(
        fragments if listed.files else [],
        pa.schema([*_data_fields(scan, schemas), *columns]),
        format_,
        fragments[0].filesystem,
    )


def expression(scan: PrunedScan) -> pc.Expression:
    """A filter for datasets that PyArrow opens itself: of their partitions, and of row groups.

    A TIMESTAMP partition column must be a timestamp without time zone there, a wall clock. Raises
    :class:`~airflow_hive_opt.engines.scan.EngineError`.
    """
    check_installed("pyarrow")
    return _expression(condition_of(scan))


def _expression(condition: Condition) -> pc.Expression:
    import pyarrow.compute as pc

    if isinstance(condition, (And, Or)):
        if not condition.parts:
            return pc.scalar(False)
        parts = map(_expression, condition.parts)
        return reduce(and_ if isinstance(condition, And) else or_, parts)
    field = pc.field(condition.column)
    if isinstance(condition, IsBetween):
        return (field >= condition.low) & (field <= condition.high)
    return _is_in(field, condition)


def _is_in(field: pc.Expression, condition: IsIn) -> pc.Expression:
    found = field.isin(list(condition.values)) if condition.values else None
    if not condition.null:
        return found
    return field.is_null() if found is None else found | field.is_null()


def _values_of(file: ListedFile, columns: list[pa.Field]) -> pc.Expression:
    import pyarrow as pa
    import pyarrow.compute as pc

    return reduce(
        and_,
        (
            pc.field(column.name).is_null()
            if value is None
            else pc.field(column.name) == pa.scalar(value, column.type)
            for column, value in zip(columns, file.values, strict=True)
        ),
    )


def _data_fields(scan: PrunedScan, schemas: list[pa.Schema]) -> list[pa.Field]:
    """The columns of the files, without partition columns that files have too."""
    import pyarrow as pa

    try:
        merged = pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowInvalid as error:
        raise EngineError(f"the files of {scan.table} do not fit together: {error}") from None
    found = [field for field in merged if field.name.lower() not in scan.columns]
    if len({field.name.lower() for field in found}) < len(found):
        raise EngineError(f"files of {scan.table} write a column's name in two ways")
    return found


def _file_system(file: ListedFile) -> Any:
    import pyarrow.fs

    if file.is_local:
        return pyarrow.fs.LocalFileSystem()
    return pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(file.file_system))


def _arrow_type(type_: str) -> pa.DataType:
    import pyarrow as pa

    if found := DECIMAL.fullmatch(type_):
        return pa.decimal128(int(found[1]), int(found[2]))
    if type_.startswith("varchar"):
        return pa.string()
    return {
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "boolean": pa.bool_(),
        "string": pa.string(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", "UTC"),
    }[type_]
