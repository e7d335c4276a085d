from datetime import date

import pytest

from airflow_hive_opt.runtime.partitions import Partition
from airflow_hive_opt.runtime.required import (
    Required,
    TooMuchToWaitFor,
    combined,
    decode,
    encode,
    missing,
    name_of,
)

DATES = Required(
    "db.t", ("ds", "n"), ("date", "int"), ("ds",), ((date(2026, 1, 1),), (date(2026, 1, 2),))
)


def test_values_are_compared_as_the_table_types_them():
    present = [Partition(("2026-01-01", "7")), Partition((None, "7")), Partition(("odd", "7"))]
    assert missing(DATES, present) == ((date(2026, 1, 2),),)
    assert name_of(DATES, (date(2026, 1, 2),)) == "ds=2026-01-02"


def test_it_travels_as_json():
    assert decode(encode([DATES])) == [DATES]


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"[{}]", b"7"])
def test_what_is_no_list(text):
    with pytest.raises(ValueError):
        decode(text)


def test_there_is_a_bound():
    many = [(n,) for n in range(1001)]
    with pytest.raises(TooMuchToWaitFor, match="1,002,001 combinations"):
        list(combined([(["a"], many), (["b"], many)]))
