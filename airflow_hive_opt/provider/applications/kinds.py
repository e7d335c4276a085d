"""The clusters whose applications can be followed by their ID, by kind and addresses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.provider.applications.driver_pods import DriverPods
from airflow_hive_opt.provider.applications.resource_manager import ResourceManager
from airflow_hive_opt.provider.applications.standalone_master import StandaloneMaster

if TYPE_CHECKING:
    from airflow_hive_opt.provider.applications.cluster import Cluster

_KINDS = {kind.kind: kind for kind in (ResourceManager, StandaloneMaster, DriverPods)}


class CanNotFollow(Exception):
    """The application can't be followed by its ID; the text is the reason."""


def cluster_at(kind: str, addresses: Sequence[str]) -> Cluster:
    """The cluster of that kind; raises ``KeyError`` for a kind that this version does not know."""
    return _KINDS[kind](tuple(addresses))


def cluster_of(hook: Any) -> Cluster:
    """The cluster of the Spark provider's hook.

    Raises :class:`CanNotFollow`, and ``ValueError`` if the connection has no address.
    """
    # late: a triggerer does not need them
    from airflow_hive_opt.provider.spark_provider import RESUMES
    from airflow_hive_opt.provider.yarn import check_on_yarn

    if not RESUMES:
        raise CanNotFollow("this needs Airflow 3.3 and its Spark provider 6.1")
    if hook._connection["deploy_mode"] != "cluster":
        raise CanNotFollow("the driver runs in the worker: the deploy mode is not 'cluster'")
    if hook._is_kubernetes:
        _check_wait(hook, "spark.kubernetes.submission.waitAppCompletion")
        return DriverPods()
    if hook._is_yarn:
        check_on_yarn(hook)
        address = hook._get_yarn_rm_base_url()
        # Airflow's database would keep the address with its login
        if hook._resolved_yarn_rm_auth is not None or "@" in address:
            raise CanNotFollow("the triggerer does not log in at YARN's resource manager")
        _check_wait(hook, "spark.yarn.submit.waitAppCompletion")
        return ResourceManager((address,))
    return StandaloneMaster(_rest_addresses(hook._connection))


def _check_wait(hook: Any, name: str) -> None:
    """Raises :class:`CanNotFollow` if the setting lets ``spark-submit`` wait for the end."""
    if (value := hook._conf.get(name)) not in (None, "false"):
        raise CanNotFollow(f"conf sets {name}={value}")


def _rest_addresses(connection: Any) -> tuple[str, ...]:
    """The REST addresses of a standalone cluster's masters.

    >>> _rest_addresses({"master": "spark://a:7077,b", "rest_scheme": "http", "rest_port": 6066})
    ('http://a:6066', 'http://b:6066')
    """
    scheme, port = connection["rest_scheme"], connection["rest_port"]
    masters = connection["master"].removeprefix("spark://").split(",")
    hosts = (master.strip().rsplit(":", 1) for master in masters)
    return tuple(f"{scheme}://{host[0]}:{port}" for host in hosts)
