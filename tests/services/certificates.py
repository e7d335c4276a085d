"""An authority of its own, and certificates of servers, for tests alone."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

PASSWORD = "of these tests"


@dataclass(frozen=True)
class Authority:
    """``ca_file`` has its certificate."""

    ca_file: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def key_store(self, host: str) -> Path:
        """A key store of Java's with a host's key and certificate; see :data:`PASSWORD`."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(host, key, self.certificate.subject, self.key, host)
        encryption = serialization.BestAvailableEncryption(PASSWORD.encode())
        store = pkcs12.serialize_key_and_certificates(
            b"server", key, certificate, [self.certificate], encryption
        )
        file = self.ca_file.with_name(f"{host}.p12")
        file.write_bytes(store)
        return file


def authority(folder: Path, name: str = "tests") -> Authority:
    """Makes one, with its certificate in the folder."""
    key = ec.generate_private_key(ec.SECP256R1())
    own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = _certificate(name, key, own, key)
    file = folder / f"{name}.pem"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return Authority(file, certificate, key)


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    signed_with: ec.EllipticCurvePrivateKey,
    host: str | None = None,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=host is None, path_length=None), critical=True)
    )
    if host is not None:
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
    return made.sign(signed_with, hashes.SHA256())
