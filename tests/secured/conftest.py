"""Metastores that want to know who asks, started once."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from airflow_hive_opt.metastores.thrift.addresses import Address
from airflow_hive_opt.metastores.thrift.security import PLAIN, Kerberos, Security, Tls
from tests.conftest import METASTORE_VERSION
from tests.services.certificates import PASSWORD, authority
from tests.services.java_options import SHORT_LIVED
from tests.services.kdc import REALM, Kdc, kdc
from tests.services.metastore import MetastoreService, metastore

SERVICE = f"hive/localhost@{REALM}"
CLIENT = f"airflow@{REALM}"


@pytest.fixture(scope="session")
def realm(tmp_path_factory):
    """A KDC that knows the metastore and a client; this process's library asks it."""
    pytest.importorskip("gssapi", reason="make test-kerberos has it")
    with (
        pytest.MonkeyPatch.context() as patch,
        kdc(tmp_path_factory.mktemp("kdc") / "own") as found,
    ):
        patch.setenv("KRB5_CONFIG", str(found.config))
        patch.setenv("KRB5CCNAME", str(found.folder / "no tickets"))
        for principal in (SERVICE, CLIENT):
            found.add(principal)
        yield found


@dataclass(frozen=True)
class Secured:
    """A metastore, how a client gets in, and the fields of its connection in Airflow."""

    service: MetastoreService
    security: Security
    extra: dict[str, str]
    login: str = ""

    @property
    def address(self) -> Address:
        return Address(self.service.host, self.service.port)

    def connection(self, login: str | None = None, password: str = "", **changed) -> str:
        """The connection as Airflow reads it from the environment; ``changed`` are in the extra."""
        document = {
            "conn_type": "hive_metastore",
            "host": self.service.host,
            "port": self.service.port,
            "login": self.login if login is None else login,
            "password": password,
            "extra": {**self.extra, **changed},
        }
        return json.dumps(document)


@pytest.fixture(scope="session")
def with_kerberos(realm, postgres_server, tmp_path_factory):
    """A metastore that wants Kerberos."""
    keytab = str(realm.keytab(CLIENT))
    folder = tmp_path_factory.mktemp("with-kerberos")
    with started(folder, postgres_server, realm, kerberos(realm)) as service:
        security = Security(Kerberos("hive/_HOST", CLIENT, keytab))
        extra = {"auth_mechanism": "GSSAPI", "principal": f"hive/_HOST@{REALM}", "keytab": keytab}
        yield Secured(service, security, extra, CLIENT)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """The authority of the metastores with TLS."""
    return authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def with_tls(certificates, postgres_server, tmp_path_factory):
    """A metastore with TLS that knows its users by their word alone."""
    folder = tmp_path_factory.mktemp("with-tls")
    with started(folder, postgres_server, None, tls(certificates)) as service:
        file = str(certificates.ca_file)
        yield Secured(service, Security(None, Tls(file)), {"use_ssl": "true", "ca_cert": file})


@pytest.fixture(scope="session")
def with_integrity(realm, postgres_server, tmp_path_factory):
    """A metastore with Kerberos that checks every frame."""
    folder = tmp_path_factory.mktemp("with-integrity")
    with started(folder, postgres_server, realm, kerberos(realm), "integrity") as service:
        yield Secured(service, PLAIN, {})


@pytest.fixture(scope="session")
def with_privacy(realm, certificates, postgres_server, tmp_path_factory):
    """A metastore with Kerberos that encrypts every frame; from Hive 3 on, over TLS."""
    settings, security = kerberos(realm), PLAIN
    if METASTORE_VERSION is not None:  # Hive 2.3 has TLS or Kerberos, not both
        settings |= tls(certificates)
        security = Security(None, Tls(str(certificates.ca_file)))
    folder = tmp_path_factory.mktemp("with-privacy")
    with started(folder, postgres_server, realm, settings, "privacy") as service:
        yield Secured(service, security, {})


def kerberos(realm: Kdc) -> dict[str, str]:
    return {
        "hive.metastore.sasl.enabled": "true",
        "hive.metastore.kerberos.principal": SERVICE,
        "hive.metastore.kerberos.keytab.file": str(realm.keytab(SERVICE)),
    }


def tls(certificates) -> dict[str, str]:
    return {
        "hive.metastore.use.SSL": "true",
        "hive.metastore.keystore.path": str(certificates.key_store("localhost")),
        "hive.metastore.keystore.password": PASSWORD,
    }


def java_options(realm: Kdc) -> str:
    return f"{SHORT_LIVED} -Djava.security.krb5.conf={realm.config}"


@contextmanager
def started(
    folder: Path, database_server, realm: Kdc | None, settings, protection="authentication"
):
    """A metastore that answers as ``localhost``, which its principal and its certificate name."""
    of_hadoop = {
        "hadoop.security.authentication": "kerberos",
        "hadoop.proxyuser.airflow.hosts": "*",
        "hadoop.proxyuser.airflow.users": "ann",
        "hadoop.rpc.protection": protection,
    }
    with metastore(
        folder,
        database_server,
        java_options=SHORT_LIVED if realm is None else java_options(realm),
        version=METASTORE_VERSION,
        settings=settings,
        of_hadoop={} if realm is None else of_hadoop,
    ) as service:
        yield replace(service, host="localhost")
