from types import SimpleNamespace

import pytest

from airflow_hive_opt.attempts import attempt_path, safe_part


def context(**changes):
    values = {"dag_id": "d", "run_id": "r", "task_id": "g.t", "map_index": 3, "try_number": 1}
    return {"ti": SimpleNamespace(**{**values, **changes})}


def test_one_path_for_each_attempt():
    base = str(attempt_path("/root/", context()))
    assert base.endswith("/root/d/r/g.t/3/1.json")
    for change in ({"dag_id": "e"}, {"run_id": "s"}, {"map_index": -1}, {"try_number": 2}):
        assert str(attempt_path("/root", context(**change))) != base


def test_object_storage_keeps_its_connection():
    path = attempt_path("memory://conn@bucket/x", context())
    assert path.conn_id == "conn"


@pytest.mark.parametrize("name", ["a:b", "a b", "../..", "a/b", "", "ü", "a%3Ab", "a+b"])
def test_parts_are_safe_and_stay_different(name):
    part = safe_part(name)
    assert set(part) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
    assert part.strip(".")
    assert part != safe_part(name + ":")
