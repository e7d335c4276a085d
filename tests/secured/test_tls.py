"""A metastore with TLS: whose certificates are accepted, and what speaks no TLS."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from airflow_hive_opt.hooks.hive_metastore import HiveMetastoreHook
from airflow_hive_opt.metastores.metastore import MetastoreError
from airflow_hive_opt.metastores.thrift.metastore import ThriftMetastore
from airflow_hive_opt.metastores.thrift.security import PLAIN, Security, Tls
from tests.services.certificates import authority

FOUND = "the database default"


def greeting(uri, security, patience=20):
    with ThriftMetastore(uri, security=security) as metastore:
        return metastore.greet(patience)


def refused(uri, security, patience=20):
    """The one line of the error, without the metastore's address."""
    with pytest.raises(MetastoreError) as raised:
        greeting(uri, security, patience)
    assert "\n" not in str(raised.value)
    address = uri.removeprefix("thrift://")
    return str(raised.value).replace(f"the metastore at {address}", "M")


def test_a_certificate_of_the_given_authority_is_accepted(with_tls):
    assert greeting(with_tls.service.uri, with_tls.security) == FOUND


def test_certificates_of_other_authorities_are_refused(with_tls, tmp_path, caplog):
    other = authority(tmp_path, "another")
    for tls in (Tls(str(other.ca_file)), Tls()):
        assert refused(with_tls.service.uri, Security(None, tls)) == (
            "the certificate of M is not accepted: self-signed certificate in certificate chain"
        )
    assert caplog.text == ""


def test_a_certificate_for_another_host_is_refused_unless_unchecked(with_tls):
    uri = f"thrift://127.0.0.1:{with_tls.service.port}"
    assert refused(uri, with_tls.security) == (
        "the certificate of M is not accepted: IP address mismatch, certificate is not valid for "
        "'127.0.0.1'"
    )
    unchecked = Security(None, replace(with_tls.security.tls, check_host_name=False))
    assert greeting(uri, unchecked) == FOUND


def test_a_ca_file_that_can_not_be_read_is_an_error(with_tls, tmp_path):
    for file in (tmp_path / "none.pem", tmp_path):
        with pytest.raises(ValueError, match="can't be read"):
            ThriftMetastore(with_tls.service.uri, security=Security(None, Tls(str(file))))


def test_a_mix_of_tls_and_plain_thrift_is_an_error_that_says_so(with_tls, metastore_service):
    ends = "Is it running, can this machine connect to it, does it require Kerberos or TLS?"
    assert refused(metastore_service.uri, with_tls.security) == (
        "no answer from M to get_databases, after 1 attempts: it closes the connection after TLS' "
        f"greeting, so it may expect plain Thrift. {ends}"
    )
    said = refused(with_tls.service.uri, PLAIN)
    assert "its answer is none of Thrift's" in said
    assert said.endswith(ends)


def test_a_silent_server_with_tls_is_given_up_after_the_timeout(with_tls):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"thrift://127.0.0.1:{silent.getsockname()[1]}"
        assert refused(uri, with_tls.security, 1) == (
            "M does not answer TLS within 1 s: it may expect plain Thrift"
        )


def test_the_test_button_checks_a_connection_with_tls(with_tls, monkeypatch):
    def said(**changed):
        monkeypatch.setenv("AIRFLOW_CONN_SECURED", with_tls.connection(**changed))
        return HiveMetastoreHook("secured").test_connection()

    uri = with_tls.service.uri
    assert said() == (True, f"the metastore at {uri} answers, and has {FOUND}")
    for changed, expected in (
        ({"use_ssl": "false"}, "does it require Kerberos or TLS?"),
        ({"ca_cert": ""}, "is not accepted: self-signed certificate in certificate chain"),
        ({"ca_cert": "/none"}, "connection 'secured': the certificates in '/none' can't be read"),
        ({"use_ssl": "maybe"}, "use_ssl in its extra must be true or false, not 'maybe'"),
        ({"auth_mechanism": "GSSAPI", "keytab": "/none"}, "the keytab /none can't be read"),
    ):
        good, text = said(**changed)
        assert not good
        assert expected in text
        assert "\n" not in text
