"""Whether Spark's metastore is AWS Glue, by the settings of AWS's client for Hive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hive_opt.metastores.glue.connection import GlueSettings
from airflow_hive_opt.spark.session.connect import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FACTORY = "hive.metastore.client.factory.class"
CATALOG_ID = "hive.metastore.glue.catalogid"
REGION = "aws.region"
ENDPOINT = "aws.glue.endpoint"
# Spark's client then has other credentials than boto3 finds.
_CREDENTIALS = "aws.catalog.credentials.provider.factory.class"


def is_on_glue(session: SparkSession) -> bool:
    """Whether the session's Spark looks tables up in Glue; false over Spark Connect."""
    return _conf(session) is not None


def glue_settings(session: SparkSession) -> GlueSettings | None:
    """The session's Data Catalog, if boto3 may find the same credentials as Spark; else ``None``.

    The settings do not contain credentials.
    """
    conf = _conf(session)
    if conf is None or conf.get(_CREDENTIALS):
        return None
    region, endpoint, catalog_id = (
        str(conf.get(name) or "").strip() or None for name in (REGION, ENDPOINT, CATALOG_ID)
    )
    return GlueSettings(region, endpoint, catalog_id)


def _conf(session: SparkSession) -> Any | None:
    """Hadoop's settings if they name a client for Glue.

    They are those of Spark's own client; a SET in the session does not change that client.
    """
    if is_remote(session) or session.conf.get("spark.sql.catalogImplementation") != "hive":
        return None
    conf: Any = session._jsparkSession.sharedState().hadoopConf()
    return conf if "glue" in str(conf.get(FACTORY) or "").lower() else None
