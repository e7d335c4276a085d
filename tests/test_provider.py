"""What Airflow reads of the provider."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.metadata import entry_points, metadata
from pathlib import Path

import jsonschema

from airflow_hive_opt.get_provider_info import get_provider_info


def test_the_info_fits_airflows_schema():
    import airflow

    schema = json.loads((Path(airflow.__file__).parent / "provider_info.schema.json").read_text())
    jsonschema.validate(get_provider_info(), schema)


def test_the_entry_point_and_the_name_agree():
    (entry,) = [
        found
        for found in entry_points(group="apache_airflow_provider")
        if found.value.startswith("airflow_hive_opt.")
    ]
    assert entry.load()() == get_provider_info()
    assert get_provider_info()["package-name"] == metadata("airflow-hive-opt")["Name"]


def test_the_modules_it_names_exist():
    for group in get_provider_info()["operators"]:
        for name in group["python-modules"]:
            import_module(name)
