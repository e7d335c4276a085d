"""The descriptor path of each attempt of a task."""

from types import SimpleNamespace
from uuid import UUID

import pytest

from airflow_hive_opt.provider.attempts import attempt_path, attempt_token, is_of_run, safe_part
from tests.versions.installed import needs_airflow


def context(**changes):
    values = {"dag_id": "d", "run_id": "r", "task_id": "g.t", "map_index": 3, "try_number": 1}
    return {"ti": SimpleNamespace(**{**values, **changes})}


def test_each_attempt_has_its_own_descriptor_path():
    base = str(attempt_path("/root/", context()))
    assert base.endswith("/root/d/r/g.t/3/1.json")
    for change in ({"dag_id": "e"}, {"run_id": "s"}, {"map_index": -1}, {"try_number": 2}):
        assert str(attempt_path("/root", context(**change))) != base


@needs_airflow("3.1")  # before it there is no file system in memory
def test_a_path_in_object_storage_keeps_its_connection():
    path = attempt_path("memory://conn@bucket/x", context())
    assert str(path).startswith("memory://conn@")


@pytest.mark.parametrize("name", ["a:b", "a b", "../..", "a/b", "", "ü", "a%3Ab", "a+b"])
def test_path_parts_have_only_safe_characters_and_stay_different(name):
    part = safe_part(name)
    assert set(part) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
    assert part.strip(".")
    assert part != safe_part(name + ":")


@pytest.mark.parametrize("name", ["a" * 250, "ü" * 250, "a" * 201, "a" * 199 + ":", "a:" * 125])
def test_long_path_parts_are_shortened_and_stay_different(name):
    part = safe_part(name)
    assert len(part.encode()) <= 200
    others = {safe_part(name + "b"), safe_part(name[:-1]), safe_part(name[:-1] + "+")}
    assert len(others | {part}) == 4
    assert safe_part("a" * 200) == "a" * 200


def test_the_attempt_token_is_the_id_of_the_task_instance():
    assert attempt_token(context()) is None
    found = UUID("0198f5a2-7b7e-7f5c-8a0e-0123456789ab")
    assert attempt_token(context(id=found)) == str(found)


@pytest.mark.parametrize("root", ["/root", "/root/", "file:///root", "s3://conn@bucket/x"])
def test_a_descriptor_path_belongs_to_its_own_run_only(root):
    where = {"dag_id": "d.e", "run_id": "manual__2026-01-31T00:00:00+00:00"}
    for task in ({"task_id": "t"}, {"task_id": "g.other"}, {"map_index": -1}, {"try_number": 12}):
        uri = str(attempt_path(root, context(**{**where, **task})))
        assert is_of_run(uri, root, **where)
        assert not is_of_run(uri, root, **{**where, "dag_id": "d-e"})
        assert not is_of_run(uri, root, **{**where, "dag_id": "d"})
        assert not is_of_run(uri, root, **{**where, "run_id": where["run_id"] + "1"})
        assert not is_of_run(uri, f"{root.rstrip('/')}/more", **where)


@pytest.mark.parametrize(
    "uri",
    [
        "/root/d/r/t/-1/../../../../other/r/t/-1/1.json",
        "/root/d/r/../r/t/1.json",
        "/root/d/r/../-1/1.json",
        "/root/d/r/./-1/1.json",
        "/root/d/r/t/-1/1.report.json",
        "/root/d/r/t/-1/1.json\n",
        "/root/d/r/t/-1/1.json/",
        "/root/d/r/t/-1/x.json",
        "/root/d/r/t/x/1.json",
        "/root/d/r/t/-1/1xjson",
        "/root/d/r/t/u/-1/1.json",
        "/root/dxr/t/-1/1.json",
        "/root/d/r//-1/1.json",
        "/root/d/r/t/-1/\u0661.json",
        "/root//d/r/t/-1/1.json",
        "file:///root/d/r/t/-1/1.json",
        "/other/root/d/r/t/-1/1.json",
        "",
    ],
)
def test_a_similar_path_does_not_belong_to_the_run(uri):
    assert is_of_run("/root/d/r/t/-1/1.json", "/root", "d", "r")
    assert not is_of_run(uri, "/root", "d", "r")
