"""Tables in a metastore as Hive itself makes them, without Spark's properties."""

from __future__ import annotations

from dataclasses import dataclass, field

from pymetastore.hive_metastore.ttypes import FieldSchema, Order, Table

from tests.services.metastore import MetastoreService
from tests.services.thrift import create_database, storage, thrift_client

DATABASE = "hive_made"
_SERDE = "org.apache.hadoop.hive.serde2"
_TEXT = "org.apache.hadoop.mapred.TextInputFormat"
_TYPES = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "binary")
_TYPES += ("date", "timestamp", "decimal(9,2)", "decimal", "char(4)", "varchar(7)", "string")
_NESTED = ("array<decimal>", "map<string,array<varchar(3)>>", "struct<a:int,b:struct<c:char(2)>>")


@dataclass(frozen=True)
class Made:
    """A table; ``serde`` has the SerDe and the input format, if they are not Parquet's."""

    columns: list[tuple[str, str]]
    keys: list[tuple[str, str]] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)
    serde: tuple[str, str] | None = None
    properties: dict[str, str] = field(default_factory=dict)
    sort: tuple[tuple[str, int], ...] = ()
    location: str = ""


_K = [("k", "int"), ("v", "string")]
TABLES = {
    "types": Made([(f"c{at}", type_) for at, type_ in enumerate((*_TYPES, *_NESTED))]),
    "keys": Made(_K, [(f"k{at}", type_) for at, type_ in enumerate(_TYPES[:7] + _TYPES[8:])]),
    "sized": Made(_K, [], {"totalSize": "12", "numRows": "3"}),
    "raw_sized": Made(_K, [], {"totalSize": "0", "rawDataSize": "99"}),
    "sized_parts": Made(_K, [("ds", "string")], {"totalSize": "12"}),
    "ascending": Made(_K, sort=(("k", 1), ("v", 1))),
    "csv": Made(_K, [("ds", "string")], {}, (f"{_SERDE}.OpenCSVSerde", _TEXT)),
    "text": Made(_K, [], {}, (f"{_SERDE}.lazy.LazySimpleSerDe", _TEXT), {"field.delim": ","}),
    "text_parts": Made(_K, [("d", "date")], {}, (f"{_SERDE}.lazy.LazySimpleSerDe", _TEXT)),
    "slashes": Made(_K, location="/"),
}


def make(service: MetastoreService, folder: str) -> None:
    """Makes the database, its tables and a view."""
    with thrift_client(service) as client:
        create_database(client, DATABASE, folder)
        for name, made in TABLES.items():
            place = storage(made.columns, f"file:{folder}/{name}{made.location}")
            if made.serde is not None:
                place.serdeInfo.serializationLib, place.inputFormat = made.serde
            place.serdeInfo.parameters = made.properties
            if made.sort:
                place.bucketCols, place.numBuckets = ["k"], 4
                place.sortCols = [Order(*each) for each in made.sort]
            keys = [FieldSchema(*key, "") for key in made.keys]
            client.create_table(_table(name, "EXTERNAL_TABLE", place, keys, made.parameters))
        view = _table("view", "VIRTUAL_VIEW", storage([("k", "int")], None), [], {})
        view.viewOriginalText = "SELECT k FROM sized"
        view.viewExpandedText = f"SELECT `sized`.`k` FROM `{DATABASE}`.`sized`"
        client.create_table(view)


def _table(name, type_, place, keys, parameters) -> Table:
    external = {"EXTERNAL": "TRUE"} if type_ == "EXTERNAL_TABLE" else {}
    return Table(
        dbName=DATABASE,
        tableName=name,
        owner="tests",
        tableType=type_,
        parameters={**external, **parameters},
        partitionKeys=keys,
        sd=place,
    )
