"""A metastore with Kerberos: tickets from keytabs and caches, and who does not get in."""

from __future__ import annotations

import re
import socket
import time
from dataclasses import replace

import pytest
from pymetastore.hive_metastore import ThriftHiveMetastore
from pymetastore.hive_metastore.ttypes import MetaException
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated

from airflow_hive_opt.hooks.hive_metastore import HiveMetastoreHook
from airflow_hive_opt.metastores.metastore import MetastoreError
from airflow_hive_opt.metastores.thrift import transport
from airflow_hive_opt.metastores.thrift.connection import ThriftConnection
from airflow_hive_opt.metastores.thrift.metastore import ThriftMetastore
from airflow_hive_opt.metastores.thrift.security import PLAIN, Kerberos, Security
from airflow_hive_opt.metastores.thrift.token import Token
from airflow_hive_opt.metastores.thrift.transport import Opener
from tests.secured.conftest import CLIENT
from tests.services.kdc import REALM, client_config
from tests.services.processes import free_port

FOUND = "the database default"


def greeting(secured, security):
    with ThriftMetastore(secured.service.uri, security=security) as metastore:
        return metastore.greet(20)


def refused(secured, security):
    """The one line of the error, without the metastore's address."""
    with pytest.raises(MetastoreError) as raised:
        greeting(secured, security)
    assert "\n" not in str(raised.value)
    return str(raised.value).replace(f"the metastore at {secured.address}", "M")


def test_a_client_with_a_keytab_is_accepted(with_kerberos, realm):
    own = with_kerberos.security.identity
    assert greeting(with_kerberos, with_kerberos.security) == FOUND
    first = replace(own, service=f"hive/_HOST@{REALM}", client="")
    assert greeting(with_kerberos, Security(first)) == FOUND


def test_a_client_with_a_ticket_cache_is_accepted(with_kerberos, realm, tmp_path, monkeypatch):
    realm.kinit(CLIENT, tmp_path / "tickets")
    named = Kerberos(cache=f"FILE:{tmp_path}/tickets")
    assert greeting(with_kerberos, Security(named)) == FOUND
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "tickets"))
    assert greeting(with_kerberos, Security(Kerberos())) == FOUND


def test_the_error_without_a_ticket_says_how_to_get_one(with_kerberos, monkeypatch):
    monkeypatch.setenv("KRB5CCNAME", "/no tickets")
    assert refused(with_kerberos, Security(Kerberos())) == (
        "M: Kerberos gives no ticket for hive/localhost: No Kerberos credentials available "
        "(default cache: /no tickets). Renew it with kinit or `airflow kerberos`, or name a keytab"
    )


def test_a_renewed_ticket_in_the_cache_is_used_at_the_next_connection(
    with_kerberos, realm, tmp_path
):
    """The cache is read again at every connection, as ``airflow kerberos`` writes it."""
    cache = tmp_path / "tickets"
    realm.kinit(CLIENT, cache, "-l", "1s")
    security = Security(Kerberos(cache=f"FILE:{cache}"))
    time.sleep(2)
    assert refused(with_kerberos, security) == (
        "M: Kerberos gives no ticket for hive/localhost: the client's own has lapsed. Renew it "
        "with kinit or `airflow kerberos`, or name a keytab"
    )
    realm.kinit(CLIENT, cache)
    assert greeting(with_kerberos, security) == FOUND


@pytest.mark.parametrize("layer", ["none", "integrity", "privacy"])
def test_a_connection_stays_open_after_its_ticket_has_expired(request, realm, layer):
    """It stays open, and the next one has another ticket from the keytab."""
    secured = request.getfixturevalue(f"with_{layer}" if layer != "none" else "with_kerberos")
    principal = f"brief-{layer}@{REALM}"
    realm.add(principal, "-maxlife", "2sec")
    brief = Kerberos("hive/_HOST", principal, str(realm.keytab(principal)))
    security = replace(secured.security, identity=brief)
    connection = ThriftConnection([secured.address], 20, security=security)
    for closes in (False, True):
        assert "default" in connection.call("get_all_databases")
        time.sleep(3)
        if closes:
            connection.close()
    assert "default" in connection.call("get_all_databases")
    assert connection.calls == 3
    connection.close()


def test_unknown_principals_and_services_are_errors_of_one_line(with_kerberos, realm, tmp_path):
    own = with_kerberos.security.identity

    def line(**changed):
        return refused(with_kerberos, Security(replace(own, **changed)))

    assert line(service="hdfs/_HOST") == (
        "M: Kerberos gives no ticket for hdfs/localhost: Server hdfs/localhost@TESTS.EXAMPLE not "
        "found in Kerberos database"
    )
    assert re.fullmatch(
        r"M: Kerberos gives no ticket for hive/localhost: .+\. Does the keytab .+ have keys for "
        r"nobody@TESTS\.EXAMPLE\?",
        line(client=f"nobody@{REALM}"),
    )
    assert line(keytab=f"{tmp_path}/none") == f"M: the keytab {tmp_path}/none can't be read"
    realm.add(f"other/localhost@{REALM}")
    assert line(service=f"other/localhost@{REALM}") == (
        "M: it refuses GSSAPI: GSS initiate failed. Its log says more"
    )


def test_a_kdc_that_does_not_answer_is_an_error_of_one_line(with_kerberos, tmp_path, monkeypatch):
    monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))
    own = replace(with_kerberos.security.identity, cache=f"MEMORY:{tmp_path}")
    (tmp_path / "krb5.conf").write_text(client_config(free_port()))
    assert refused(with_kerberos, Security(own)) == (
        "M: Kerberos gives no ticket for hive/localhost: Cannot contact any KDC for realm "
        "'TESTS.EXAMPLE'"
    )
    monkeypatch.setattr(transport, "_HANDSHAKE", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        (tmp_path / "krb5.conf").write_text(client_config(silent.getsockname()[1]))
        assert refused(with_kerberos, Security(own)) == (
            "M: Kerberos gives no ticket for hive/localhost: Kerberos has not answered in 1 s. Is "
            "the KDC running?"
        )


def test_a_server_or_a_client_without_sasl_is_an_error(with_kerberos, with_tls, metastore_service):
    assert re.fullmatch(
        "no answer from M to get_databases, after 1 attempts: (it closes the connection|its answer "
        r"is none of Thrift's \(.+\))\. Is it running, can this machine connect to it, does it "
        r"require Kerberos or TLS\?",
        refused(with_kerberos, PLAIN),
    )
    other = "M: its answer to GSSAPI is none of SASL's, so it may expect plain Thrift or TLS"
    assert refused(with_tls, with_kerberos.security) == other
    plain = replace(with_kerberos, service=replace(metastore_service, host="localhost"))
    said = refused(plain, with_kerberos.security)
    assert "it closes the connection after GSSAPI, so it may expect plain Thrift or TLS" in said


def test_a_client_may_act_as_an_allowed_proxy_user_only(with_kerberos):
    own = with_kerberos.security.identity
    as_ann = Security(replace(own, proxy_user="ann"))
    assert greeting(with_kerberos, as_ann) == FOUND
    _, opened = Opener(as_ann).open(with_kerberos.address, 20)
    client = ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(opened))
    with pytest.raises(MetaException, match="ann is not allowed to impersonate bob"):
        client.get_delegation_token("bob", "bob")
    opened.close()
    assert refused(with_kerberos, Security(replace(own, proxy_user="bob"))) == (
        "M does not let this client act as 'bob': User: airflow@TESTS.EXAMPLE is not allowed to "
        "impersonate bob"
    )


def test_a_token_that_the_server_does_not_know_is_replaced(with_kerberos):
    """The client asks for another one, by its own ticket."""
    opener = Opener(Security(replace(with_kerberos.security.identity, proxy_user="ann")))
    opener._token = Token(b"old", b"older")
    _, opened = opener.open(with_kerberos.address, 20)
    opened.close()
    assert opener._token.identifier != b"old"


def test_the_test_button_checks_a_connection_with_kerberos(with_kerberos, monkeypatch):
    def said(**changed):
        monkeypatch.setenv("AIRFLOW_CONN_SECURED", with_kerberos.connection(**changed))
        good, text = HiveMetastoreHook("secured").test_connection()
        assert "\n" not in text
        return good, text.replace(with_kerberos.service.uri, "URI").replace(
            str(with_kerberos.address), "M"
        )

    assert said() == (True, f"the metastore at URI answers, and has {FOUND}")
    for changed, expected in (
        ({"keytab": "/none"}, "the metastore at M: the keytab /none can't be read"),
        ({"principal": ""}, None),
        ({"principal": "", "kerberos_service_name": "hdfs"}, "not found in Kerberos database"),
        ({"auth_mechanism": "NOSASL"}, "does it require Kerberos or TLS?"),
        ({"auth_mechanism": "SCRAM"}, "it requires SCRAM, but this client supports NOSASL, GSSAPI"),
        ({"auth_mechanism": "LDAP"}, "connection 'secured': LDAP needs login and password"),
    ):
        good, text = said(**changed)
        assert good is (expected is None)
        assert good or expected in text
