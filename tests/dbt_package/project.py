"""A dbt project with one incremental model, run in this process on the session of the test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner

PACKAGE = Path(__file__).parents[2] / "airflow_hive_opt" / "dbt_package"
CHANGES = "select * from changes"


class Project:
    """Projects differ in the model's configuration, and in whether they use the package."""

    def __init__(self, folder: Path, session: Any, table_format: str) -> None:
        self._folder = folder
        self._session = session
        self._format = table_format
        (folder / "models").mkdir()
        profile = {"type": "spark", "method": "session", "schema": "dw", "host": "none"}
        outputs = {"target": "dev", "outputs": {"dev": {**profile, "threads": 1}}}
        (folder / "profiles.yml").write_text(json.dumps({"here": outputs}))

    def run(self, with_package: bool = True, model: str = CHANGES, **config: Any) -> list[str]:
        """Runs the model ``sales``; returns what dbt logged. Raises AssertionError if it fails."""
        settings: dict[str, Any] = {
            "name": "shop",
            "version": "1.0",
            "profile": "here",
            "flags": {"send_anonymous_usage_stats": False},
        }
        if with_package:
            settings["dispatch"] = [
                {"macro_namespace": "dbt", "search_order": ["shop", "airflow_hive_opt", "dbt"]}
            ]
            packages = {"packages": [{"local": str(PACKAGE)}]}
            (self._folder / "packages.yml").write_text(json.dumps(packages))
        (self._folder / "dbt_project.yml").write_text(json.dumps(settings))
        config = {
            "materialized": "incremental",
            "incremental_strategy": "merge",
            "file_format": self._format,
            "partition_by": ["day"],
            "unique_key": ["id", "day"],
            **config,
        }
        arguments = ", ".join(f"{name}={value!r}" for name, value in config.items())
        text = f"{{{{ config({arguments}) }}}}\n{model}\n"
        (self._folder / "models" / "sales.sql").write_text(text)
        if with_package and not (self._folder / "dbt_packages").exists():
            self._invoke("deps")
        return self._invoke("run")

    def _invoke(self, command: str) -> list[str]:
        """Runs a command of dbt. Raises AssertionError with what it logged if it fails."""
        told: list[str] = []
        runner = dbtRunner(callbacks=[lambda event: told.append(event.info.msg)])
        where = ["--project-dir", str(self._folder), "--profiles-dir", str(self._folder)]
        result = runner.invoke([command, *where, "--quiet"])
        assert result.success, "\n".join(told)
        return told
