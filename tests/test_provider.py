"""What Airflow reads of the provider."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.metadata import entry_points, metadata
from pathlib import Path

import jsonschema

from airflow_hive_opt.get_provider_info import get_provider_info


def test_the_provider_info_fits_airflows_schema():
    import airflow

    schema = json.loads((Path(airflow.__file__).parent / "provider_info.schema.json").read_text())
    jsonschema.validate(get_provider_info(), schema)


def test_the_entry_point_returns_the_provider_info_with_the_package_name():
    (entry,) = [
        found
        for found in entry_points(group="apache_airflow_provider")
        if found.value.startswith("airflow_hive_opt.")
    ]
    assert entry.load()() == get_provider_info()
    assert get_provider_info()["package-name"] == metadata("airflow-hive-opt")["Name"]


def test_the_modules_in_the_provider_info_exist():
    info = get_provider_info()
    for kind in ("operators", "sensors", "triggers", "hooks"):
        for group in info[kind]:
            for name in group["python-modules"]:
                import_module(name)
    for path in info["extra-links"]:
        module, _, name = path.rpartition(".")
        assert getattr(import_module(module), name)().name
    for found in info["connection-types"]:
        module, _, name = found["hook-class-name"].rpartition(".")
        hook = getattr(import_module(module), name)
        assert hook.conn_type == found["connection-type"]
        behaviour = hook.get_ui_field_behaviour()
        assert found["ui-field-behaviour"] == {
            key.replace("_", "-"): value for key, value in behaviour.items()
        }


def test_the_plugin_is_found_by_its_entry_point():
    (entry,) = [
        found
        for found in entry_points(group="airflow.plugins")
        if found.value.startswith("airflow_hive_opt.")
    ]
    (app,) = entry.load()().fastapi_apps
    assert app["url_prefix"] == "/hive_opt"


def test_connection_types_of_installed_providers_are_not_registered_twice(tmp_path, monkeypatch):
    def types():
        return [found["connection-type"] for found in get_provider_info()["connection-types"]]

    def install(provider):
        installed = tmp_path / f"apache_airflow_providers_apache_{provider}-9.7.1.dist-info"
        installed.mkdir()
        name = f"Name: apache-airflow-providers-apache-{provider}"
        (installed / "METADATA").write_text(f"Metadata-Version: 2.1\n{name}\nVersion: 9.7.1\n")

    assert types() == ["hive_opt", "hive_metastore", "iceberg"]
    monkeypatch.syspath_prepend(tmp_path)
    install("hive")
    assert types() == ["hive_opt", "iceberg"]
    install("iceberg")
    assert types() == ["hive_opt"]
