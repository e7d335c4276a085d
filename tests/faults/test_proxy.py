"""The proxy does to a real metastore what it says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pymetastore.hive_metastore.ttypes import AlreadyExistsException
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TTransportException

from tests.faults.proxy import Fault, proxy
from tests.services.thrift import create_database, thrift_client


@pytest.fixture
def meter(metastore_service):
    with proxy(metastore_service.port) as running:
        yield running


@pytest.mark.parametrize(
    ("fault", "error", "made"),
    [
        (Fault.NONE, None, True),
        (Fault.REFUSE, TTransportException, False),
        (Fault.CUT, TTransportException, True),
        (Fault.TWICE, AlreadyExistsException, True),
        (Fault.ERROR, TApplicationException, False),
        (Fault.DOWN, TTransportException, False),
        (Fault.LATE, TTransportException, True),
    ],
)
def test_the_proxy_applies_each_fault_to_a_metastore_call(
    metastore_service, meter, tmp_path, fault, error, made
):
    through = replace(metastore_service, port=meter.port)
    name = f"proxied_{fault}"
    with thrift_client(through) as client, thrift_client(metastore_service) as direct:
        meter.plan(fault, at=2)
        assert name not in client.get_all_databases()
        if error is None:
            create_database(client, name, f"file:{tmp_path}")
        else:
            with pytest.raises(error):
                create_database(client, name, f"file:{tmp_path}")
        assert meter.calls == ["get_all_databases", "create_database"]
        meter.plan()
        assert (name in direct.get_all_databases()) is made


def test_a_server_that_is_down_stays_down_until_the_plan_is_reset(metastore_service, meter):
    through = replace(metastore_service, port=meter.port)
    meter.plan(Fault.DOWN, at=1)
    for _ in range(2):
        with thrift_client(through) as client, pytest.raises(TTransportException):
            client.get_all_databases()
    meter.plan()
    with thrift_client(through) as client:
        assert client.get_all_databases()
