"""The tables of the planner's tests."""

from airflow_hive_opt.statement.catalog import Column, JsonCatalog, Table


def columns(**types: str) -> tuple[Column, ...]:
    return tuple(Column(name, type_) for name, type_ in types.items())


STAR = JsonCatalog.of(
    [
        Table(
            "default.sales",
            columns(item="int", store="int", amount="double", info="struct<a:int>"),
            columns(ds="string"),
        ),
        Table("default.returns", columns(item="int"), columns(ds="string", hr="int")),
        Table("default.days", columns(ds="string", day="string", year="int"), total_bytes=5000),
        Table("default.structs", columns(k="int", s="struct<ds:string>"), total_bytes=5000),
        Table("default.items", columns(item="int", category="string"), total_bytes=5000),
        Table("default.customers", columns(ds="string"), total_bytes=10**9),
        Table("dw.sales", columns(x="int"), columns(ds="string")),
    ]
)
