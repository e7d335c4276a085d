"""Example DAGs for runners that can't run here: Airflow's operators accept them.

The values that the local task hands over arrive where the runner's own interface wants them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.operators.test_dag import DAGS
from tests.services.spark_settings import LONG_LIVED
from tests.thrift_server.test_statements import (
    OLD,
    execute,
    old_rows,  # noqa: F401 - a fixture
    prune,
    written,
)

HANDED = {
    "restricted_sql": "SELECT 1",
    "restricted_sql_guarded_uri": "s3://bucket/1.guarded.sql",
}


@pytest.fixture
def task(database):
    """The last task of an example, rendered with the XComs of its local task."""

    def task(name):
        from tests.operators.dag_bags import DagBag

        bag = DagBag(DAGS / f"{name}.py")
        assert bag.import_errors == {}
        if name not in bag.dags:
            pytest.skip("make test-thrift-server has the provider")
        found = bag.dags[name].get_task("join")
        assert found.upstream_task_ids == {"look"}
        pull = lambda task_ids, key, **_: HANDED[key]  # noqa: E731
        found.render_template_fields(
            {"ti": SimpleNamespace(xcom_pull=pull), "var": SimpleNamespace(value=Variables())}
        )
        return found

    return task


class Variables:
    def __getattr__(self, name):
        return "j-1"


def test_livy_gets_the_script_and_the_file(task):
    found = task("livy_sales")
    body = found.hook.build_post_batch_body(**found.spark_params)
    assert body["args"] == [HANDED["restricted_sql_guarded_uri"]]
    assert body["file"].endswith("/run_statements.py")


def test_emr_accepts_the_step(task):
    found = task("emr_sales")
    botocore = pytest.importorskip("botocore.session")
    from botocore.validate import ParamValidator

    model = botocore.get_session().get_service_model("emr").operation_model("AddJobFlowSteps")
    given = {"JobFlowId": found.job_flow_id, "Steps": found.steps}
    report = ParamValidator().validate(given, model.input_shape)
    assert not report.has_errors(), report.generate_report()
    assert found.steps[0]["HadoopJarStep"]["Args"] == [
        *("spark-sql", "-f"),
        HANDED["restricted_sql_guarded_uri"],
    ]


def test_databricks_gets_the_statement(task):
    assert task("databricks_sales").sql == HANDED["restricted_sql"]


def test_the_application_fits_the_schema_of_the_spark_operator(task):
    from tests.services.kubernetes_stand_in import violation

    found = task("spark_kubernetes_sales")
    document = {**found.template_spec, "metadata": {"name": "join", "namespace": "etl"}}
    assert violation("sparkapplications", document) is None
    assert document["spec"]["arguments"] == [HANDED["restricted_sql_guarded_uri"]]


def test_the_script_runs_the_statements_and_stops_at_the_guard(
    star,
    old_rows,  # noqa: F811
    metastore_service,
    tmp_path,
):
    handed = prune(tmp_path)

    def submitted(**conf):
        command = [str(Path(sys.executable).parent / "spark-submit"), "--master", "local[2]"]
        for name, value in {**LONG_LIVED, **metastore_service.spark_conf(), **conf}.items():
            command += ["--conf", f"{name}={value}"]
        script = [str(DAGS / "spark" / "run_statements.py"), handed["restricted_sql_guarded_uri"]]
        return subprocess.run(
            [*command, *script],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )

    failed = submitted(**{"spark.sql.caseSensitive": "true"})
    assert failed.returncode != 0
    assert "airflow_hive_opt: spark.sql.caseSensitive is not false" in failed.stderr
    assert written() == OLD
    done = submitted()
    assert done.returncode == 0, done.stderr[-2000:]
    execute("REFRESH TABLE sales_by_category")
    rows = written()
    execute(handed["restricted_sql"])
    assert written() == rows != OLD
