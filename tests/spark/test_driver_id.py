from types import SimpleNamespace

import pytest

from airflow_hive_opt.spark.application.driver_id import id_on_cluster

ID = "driver-20261129052333-0001"


@pytest.mark.parametrize(
    ("folder", "master", "expected"),
    [
        (ID, "spark://a:7077,b:7077", ID),
        (ID, "local[2]", "app-1"),
        ("driver-1", "spark://a:7077", "app-1"),
        (f"x{ID}", "spark://a:7077", "app-1"),
    ],
)
def test_a_driver_on_a_standalone_cluster_knows_its_id(
    monkeypatch, tmp_path, folder, master, expected
):
    """``tests/kills`` has drivers of real clusters, whose tasks die before they know the ID."""
    (at := tmp_path / folder).mkdir()
    monkeypatch.chdir(at)
    session = SimpleNamespace(conf={"spark.master": master})
    assert id_on_cluster(session, "app-1") == expected


def test_a_folder_that_is_gone_names_no_driver(monkeypatch, tmp_path):
    (at := tmp_path / ID).mkdir()
    monkeypatch.chdir(at)
    at.rmdir()
    assert id_on_cluster(SimpleNamespace(conf={}), "app-1") == "app-1"
    monkeypatch.chdir(tmp_path)
