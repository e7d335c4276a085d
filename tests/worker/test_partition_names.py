"""The partitions that fulfil conditions, by their names."""

from __future__ import annotations

import pytest

from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.pruning.decisions import Layer
from airflow_hive_opt.statement.catalog import Column, Table
from airflow_hive_opt.worker.keys import Keys
from airflow_hive_opt.worker.partition_names import fulfilling
from airflow_hive_opt.worker.types import sql_type
from tests.worker.small_tables import key_source

TABLE = Table("s", (), (Column("ds", "date"), Column("hr", "int"), Column("x", "timestamp")))
ROWS = [
    ("2020-01-31", "1", "2020-01-01 00:00:00"),
    ("2020-02-29", "08", None),
    ("2020-03-01", None, None),
    ("2020-1-5", "2", None),
    ("2021-01-01", "3", "odd"),
]
SCAN = (Layer("s"),)
PARTITIONS = [Partition(row) for row in ROWS]


def kept(*conditions, layers=SCAN, keys=None, table=TABLE, **parameters):
    found = fulfilling(table, layers, PARTITIONS, conditions, parameters, keys)
    return None if found is None else [PARTITIONS.index(each) for each in found.partitions]


def keys(rows, *columns):
    """Keys of columns ``alias.name type``."""
    names, types = zip(*(column.split() for column in columns), strict=True)
    known = tuple(map(sql_type, types))
    return Keys(key_source("", *names), tuple(rows), (1,) * len(rows), known, exact=True)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (["s.ds > '2020-06-01'"], [1, 3, 4]),
        (["year(s.ds) = 2021"], [1, 3, 4]),
        (["s.hr = 1"], [0, 1, 3]),
        (["s.hr IS NULL"], [1, 2, 3]),
        (["s.hr = 1", "s.ds < DATE '2020-02-01'"], [0, 1, 3]),
        (["s.hr = 1", "date_format(s.x, 'y') = '2'"], [0, 1, 3]),
        (["s.x > '2020'"], [0, 1, 2, 3, 4]),
        (["s.hr = :h"], [1, 3, 4]),
        (["s.hr = 1 OR s.hr IN (SELECT k FROM d)"], [0, 1, 2, 3, 4]),
        (["s.hr = = 1"], [0, 1, 2, 3, 4]),
    ],
)
def test_partitions_are_found_by_conditions_on_their_values(conditions, expected):
    assert kept(*conditions, h=3) == expected


def test_conditions_that_are_not_deterministic_are_not_evaluated():
    assert kept("s.ds < current_date") is None
    layers = (Layer("s"), Layer("q", (("r", "rand()"),)))
    assert kept("q.r < 1", layers=layers) is None


def test_the_default_partition_of_a_serde_is_always_kept():
    served = Table("s", (), TABLE.partition_columns, by_serde=True)
    assert kept("s.hr = 1", table=served) == [0, 1, 2, 3]


def test_conditions_on_columns_of_nested_queries_are_evaluated():
    layers = (
        Layer("s"),
        Layer("q", (("m", "month(`s`.`ds`)"), ("u", "upper(`s`.`hr`)"), ("hr", "`s`.`hr`"))),
        Layer("z", (("n", "`q`.`m` + 1"), ("u", "`q`.`u`"))),
    )
    assert kept("z.n = 2", layers=layers) == [0, 1, 3, 4]
    assert kept("z.n = 2", "z.u = '1'", layers=layers) == [0, 1, 3, 4]
    assert kept("q.hr = 1 AND q.m = 1", layers=layers[:2]) == [0, 1, 3]


def test_partitions_are_found_by_keys():
    some = keys([(1, "x"), (3, None)], "d.k int", "d.t string")
    assert kept("s.hr = d.k", keys=some) == [0, 1, 3, 4]
    assert kept("s.hr <= d.k", "d.t IS NOT NULL", keys=some) == [0, 1, 3]
    assert kept("s.hr = d.k", "s.x = d.t", keys=some) == [0, 1, 3, 4]
    none = keys([], "d.k int")
    assert kept("s.hr = d.k", keys=none) == [1, 3]
    assert kept("s.x = d.k", keys=none) == [1, 3]


def test_text_partitions_are_compared_with_keys_of_numbers_and_dates():
    """A text in another form may be any number or date."""
    from datetime import date

    table = Table("s", (), (Column("p", "string"),))
    partitions = [Partition((each,)) for each in ("1", "2020-01-31", "08", "8", "x", None)]
    some = keys([(8, date(2020, 1, 31), "1")], "d.k int", "d.e date", "d.t string")
    for condition, expected in (
        ("s.p = d.k", [1, 2, 3, 4]),
        ("d.e = s.p", [0, 1, 2, 3, 4]),
        ("s.p = d.t", [0]),
        ("(s.p = d.k OR s.p = d.t)", [0, 1, 2, 3, 4]),
        ("s.p BETWEEN 1 AND d.t", [0, 1, 2, 4]),
    ):
        found = fulfilling(table, (Layer("s"),), partitions, [condition], {}, some)
        assert [partitions.index(each) for each in found.partitions] == expected, condition
    odd = keys([("x",)], "d.t string")
    assert kept("s.hr = d.t", keys=odd) == [0, 1, 3, 4]


def test_partitions_are_found_by_keys_of_several_relations():
    from datetime import date
    from decimal import Decimal

    some = keys([(1, date(2020, 1, 31)), (3, None)], "d.k int", "e.k date")
    assert kept("s.hr = d.k", "s.ds = e.k", keys=some) == [0, 1, 3]
    other = keys([(Decimal("3.00"), True)], "d.k decimal(5,2)", "e.k boolean")
    assert kept("s.hr = d.k", "e.k", keys=other) == [1, 3, 4]


def test_conditions_are_evaluated_on_thousands_of_text_partitions():
    table = Table("s", (), (Column("p", "string"),))
    texts = ["", "it's", "é😀", "a\tb", *(str(number) for number in range(5000))]
    partitions = [Partition((text,)) for text in texts]
    found = fulfilling(table, (Layer("s"),), partitions, ["s.p >= '4990'"], {})
    assert found.exact
    assert [each.values[0] for each in found.partitions] == [t for t in texts if t >= "4990"]
