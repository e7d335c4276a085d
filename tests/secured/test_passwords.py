"""A metastore of Hive 4 that checks a user's password itself."""

from __future__ import annotations

import pytest

from airflow_hive_opt.hooks.hive_metastore import HiveMetastoreHook, spark_conf_of
from airflow_hive_opt.metastores.metastore import MetastoreError
from airflow_hive_opt.metastores.thrift.metastore import ThriftMetastore
from airflow_hive_opt.metastores.thrift.security import Password, Security, Tls
from tests.conftest import METASTORE_VERSION
from tests.secured.conftest import Secured, started, tls

pytestmark = pytest.mark.skipif(
    METASTORE_VERSION != "hive-4.0", reason="only Hive 4 checks passwords: METASTORE_VERSION"
)


@pytest.fixture(scope="module")
def with_passwords(certificates, postgres_server, tmp_path_factory):
    """The only user is ``ann``; TLS protects her password."""
    own = {
        "metastore.authentication": "CONFIG",
        "metastore.execute.setugi": "false",  # nobody is believed by his word alone
        "metastore.authentication.config.username": "ann",
        "metastore.authentication.config.password": "hers",
    }
    folder = tmp_path_factory.mktemp("with-passwords")
    with started(folder, postgres_server, None, own | tls(certificates)) as service:
        file = str(certificates.ca_file)
        extra = {"auth_mechanism": "LDAP", "use_ssl": "true", "ca_cert": file}
        yield Secured(service, Security(Password("ann", "hers"), Tls(file)), extra, "ann")


def greeting(secured, password):
    security = Security(Password("ann", password), secured.security.tls)
    with ThriftMetastore(secured.service.uri, security=security) as metastore:
        return metastore.greet(20)


def test_a_right_password_is_accepted_and_a_wrong_one_refused(with_passwords):
    assert greeting(with_passwords, "hers") == "the database default"
    with pytest.raises(MetastoreError) as raised:
        greeting(with_passwords, "another")
    assert "it refuses PLAIN: " in str(raised.value)
    assert "another" not in str(raised.value)


def test_the_password_of_a_connection_is_used_and_not_given_to_spark(with_passwords, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_SECURED", with_passwords.connection(password="hers"))
    good, said = HiveMetastoreHook("secured").test_connection()
    assert good, said
    assert "hers" not in str(spark_conf_of("secured"))
