"""The dictionary by which Airflow knows this provider; imports no large library."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

_HIVE_METASTORE = {
    "hook-class-name": "airflow_hive_opt.hooks.hive_metastore.HiveMetastoreHook",
    "hook-name": "Hive Metastore Thrift",
    "connection-type": "hive_metastore",
    "ui-field-behaviour": {
        "hidden-fields": [],
        "relabeling": {
            "schema": "Database",
            "host": "Host, or hosts",
            "login": "Principal, or user",
        },
        "placeholders": {
            "host": "metastore-1,metastore-2",
            "port": "9083",
            "schema": "default",
            "extra": (
                '{"auth_mechanism": "GSSAPI", "principal": "hive/_HOST@EXAMPLE.COM", '
                '"keytab": "/etc/security/airflow.keytab", "use_ssl": true}'
            ),
        },
    },
}

_ICEBERG = {
    "hook-class-name": "airflow_hive_opt.hooks.iceberg_catalog.IcebergCatalogHook",
    "hook-name": "Iceberg",
    "connection-type": "iceberg",
    "ui-field-behaviour": {
        "hidden-fields": ["schema", "port"],
        "relabeling": {
            "host": "Catalog URI",
            "login": "Client ID",
            "password": "Client Secret",
        },
        "placeholders": {
            "host": "https://catalog.example.com",
            "extra": '{"warehouse": "s3://warehouse/", "s3.region": "eu-central-1"}',
        },
    },
}
_HIVE_OPT = {
    "hook-class-name": "airflow_hive_opt.hooks.pruned_sql.PrunedSqlHook",
    "hook-name": "Hive Opt",
    "connection-type": "hive_opt",
    "ui-field-behaviour": {
        "hidden-fields": ["host", "port", "login", "password"],
        "relabeling": {"schema": "Database"},
        "placeholders": {
            "schema": "default",
            "extra": (
                '{"spark_conn_id": "spark_default", "metastore_conn_id": "metastore_default", '
                '"max_rows": 10000}'
            ),
        },
    },
}
# Each connection type, and the provider of Airflow's that brings it too, if there is one.
_CONNECTION_TYPES: tuple[tuple[dict[str, Any], str | None], ...] = (
    (_HIVE_OPT, None),
    (_HIVE_METASTORE, "apache-airflow-providers-apache-hive"),
    (_ICEBERG, "apache-airflow-providers-apache-iceberg"),
)


def ui_field_behaviour(connection_type: str) -> dict[str, Any]:
    """The form of a connection type as its hook gives it to Airflow, with underscores in names."""
    types = {each["connection-type"]: each for each, _ in _CONNECTION_TYPES}
    form: dict[str, Any] = types[connection_type]["ui-field-behaviour"]
    return {name.replace("-", "_"): value for name, value in form.items()}


def get_provider_info() -> dict[str, Any]:
    """The provider's entry point, in the form of Airflow's ``provider_info.schema.json``."""
    return {
        "package-name": "airflow-hive-opt",
        "name": "Hive Opt",
        "description": (
            "Star joins that know their partitions before they start: "
            "Hive's map-join partition pruning on Spark."
        ),
        "integrations": [
            {
                "integration-name": "Hive Opt",
                "external-doc-url": "https://cwiki.apache.org/confluence/display/Hive/MapJoin+and+Partition+Pruning",
                "tags": ["software"],
            }
        ],
        "operators": [
            {
                "integration-name": "Hive Opt",
                "python-modules": [
                    "airflow_hive_opt.operators.key_index",
                    "airflow_hive_opt.operators.local_task",
                    "airflow_hive_opt.operators.map_join",
                    "airflow_hive_opt.operators.map_join_prune",
                ],
            }
        ],
        "sensors": [
            {
                "integration-name": "Hive Opt",
                "python-modules": [
                    "airflow_hive_opt.sensors.partition_descriptor",
                    "airflow_hive_opt.sensors.required_partitions",
                ],
            }
        ],
        "triggers": [
            {
                "integration-name": "Hive Opt",
                "python-modules": [
                    "airflow_hive_opt.triggers.application",
                    "airflow_hive_opt.triggers.connect_statement",
                    "airflow_hive_opt.triggers.partitions",
                ],
            }
        ],
        "hooks": [
            {
                "integration-name": "Hive Opt",
                "python-modules": [
                    "airflow_hive_opt.hooks.hive_metastore",
                    "airflow_hive_opt.hooks.iceberg_catalog",
                    "airflow_hive_opt.hooks.pruned_sql",
                ],
            }
        ],
        "connection-types": [
            found
            for found, provider in _CONNECTION_TYPES
            if provider is None or not _is_installed(provider)
        ],
        "extra-links": [
            "airflow_hive_opt.links.pages.DescriptorLink",
            "airflow_hive_opt.links.pages.ExplainLink",
            "airflow_hive_opt.links.spark_ui.SparkUILink",
        ],
        "task-decorators": [
            {
                "name": "map_join_prune",
                "class-name": "airflow_hive_opt.decorators.map_join_prune.map_join_prune_task",
            }
        ],
        "config": {
            "hive_opt": {
                "description": "Settings of airflow-hive-opt.",
                "options": {
                    "descriptor_path": {
                        "description": (
                            "Folder, as a local path or an object storage URI, under which every "
                            "task attempt writes its partition descriptor. Default: "
                            "hive_opt_descriptors under AIRFLOW_HOME."
                        ),
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "s3://aws_default@bucket/descriptors",
                        "default": "",
                    },
                    "index_path": {
                        "description": (
                            "Folder, as a local path or an object storage URI, of the key indexes "
                            "that KeyIndexOperator builds and other tasks read. Without it, there "
                            "are none."
                        ),
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "s3://aws_default@bucket/indexes",
                        "default": "",
                    },
                    "session": {
                        "description": (
                            "Where a task without a connection runs Spark: in a Spark of its own "
                            "(task), or in one that the tasks of this user on this machine share "
                            "(shared). The first task starts the shared Spark."
                        ),
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "shared",
                        "default": "task",
                    },
                    "local_task": {
                        "description": (
                            "Where local tasks run, unless a task says otherwise: in the task's "
                            "own process without a JVM (worker), on Spark (spark), or in the "
                            "worker if it can answer (auto)."
                        ),
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "spark",
                        "default": "auto",
                    },
                    "session_idle": {
                        "description": (
                            "Seconds without a task after which the shared Spark ends."
                        ),
                        "version_added": "0.1.0",
                        "type": "integer",
                        "example": "3600",
                        "default": "300",
                    },
                    "session_tasks": {
                        "description": (
                            "How many tasks may use the shared Spark at the same time; others wait."
                        ),
                        "version_added": "0.1.0",
                        "type": "integer",
                        "example": "4",
                        "default": "16",
                    },
                    "show_rows": {
                        "description": (
                            "How many of a SELECT's first rows a task's log shows, unless the task "
                            "says otherwise; 0 for none."
                        ),
                        "version_added": "0.1.0",
                        "type": "integer",
                        "example": "0",
                        "default": "5",
                    },
                    "spark_ui_url": {
                        "description": (
                            "Address of Spark's page of an application, for the link on a task: "
                            "{application_id} stands for the application's id. A history server's "
                            "http://host:18080/history/{application_id}/, a standalone master's "
                            "http://host:8080/app/?appId={application_id}, or YARN's "
                            "http://host:8088/cluster/app/{application_id}."
                        ),
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "http://history:18080/history/{application_id}/",
                        "default": "",
                    },
                    "warehouse": {
                        "description": (
                            "Folder of the embedded warehouse, for tasks without a connection. "
                            "Default: $AIRFLOW_HIVE_OPT_WAREHOUSE, else "
                            "~/.airflow-hive-opt/warehouse."
                        ),
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "/srv/warehouse",
                        "default": "",
                    },
                },
            }
        },
    }


def _is_installed(provider: str) -> bool:
    """Whether another installed provider has the connection type, which then stays with it.

    Of two providers with one type Airflow takes the first by name, which would be this one, and
    warns. ``Connection.get_hook`` would then give that provider's users another hook.
    """
    try:
        distribution(provider)
    except PackageNotFoundError:
        return False
    return True
