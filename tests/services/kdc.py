"""A Kerberos KDC on loopback, from Debian's packages, which ``make kerberos`` unpacks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM

from tests.services.processes import HOST, ServiceError, free_port, listens, server

ROOT = Path(sys.prefix, "share", "kerberos")
REALM = "TESTS.EXAMPLE"


@dataclass(frozen=True)
class Kdc:
    """A running KDC; ``config`` is the ``krb5.conf`` of its clients."""

    folder: Path
    config: Path

    def add(self, principal: str, *options: str) -> None:
        """Adds a principal with random keys; ``options`` are those of kadmin's addprinc."""
        _run(
            self.folder, "kadmin.local", "-q", f"addprinc -randkey {' '.join(options)} {principal}"
        )

    def keytab(self, *principals: str) -> Path:
        """A file with the keys of principals, which stay as they are."""
        file = self.folder / f"{'-'.join(principals).replace('/', '.')}.keytab"
        if not file.exists():
            for principal in principals:
                _run(self.folder, "kadmin.local", "-q", f"ktadd -norandkey -k {file} {principal}")
        return file

    def kinit(self, principal: str, cache: Path, *options: str) -> None:
        """Puts a new ticket into a cache of tickets."""
        keytab = self.keytab(principal)
        _run(self.folder, "kinit", *options, "-c", str(cache), "-k", "-t", str(keytab), principal)


@contextmanager
def kdc(folder: Path) -> Iterator[Kdc]:
    """Runs a KDC for the block; raises :class:`~tests.services.processes.ServiceError`."""
    if not ROOT.exists():
        raise ServiceError(f"there is no KDC in {ROOT}: run `make kerberos`")
    folder.mkdir(parents=True)
    port = free_port()
    (plugins,) = ROOT.glob("usr/lib/*/krb5/plugins/kdb")
    (folder / "kdc.conf").write_text(
        f"""[kdcdefaults]
 kdc_listen = {HOST}:{port}
 kdc_tcp_listen = {HOST}:{port}
[realms]
 {REALM} = {{
  database_name = {folder}/principals
  key_stash_file = {folder}/stash
  max_renewable_life = 7d
 }}
[dbmodules]
 db_module_dir = {plugins}
[logging]
 kdc = FILE:{folder}/kdc.log
"""
    )
    config = folder / "krb5.conf"
    config.write_text(client_config(port))
    _run(folder, "kdb5_util", "create", "-s", "-r", REALM, "-P", "of these tests")
    command = [_program("krb5kdc"), "-n"]
    options = {"stop_with": SIGTERM, "env": _environment(folder)}
    with server(command, folder / "krb5kdc.log", lambda: listens(port), **options):
        yield Kdc(folder, config)


def client_config(port: int) -> str:
    """The ``krb5.conf`` for a KDC on a loopback port; nothing is asked of DNS."""
    return f"""[libdefaults]
 default_realm = {REALM}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {REALM} = {{
  kdc = {HOST}:{port}
 }}
[domain_realm]
 localhost = {REALM}
"""


def _run(folder: Path, program: str, *arguments: str) -> None:
    done = subprocess.run(
        [_program(program), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=_environment(folder),
    )
    # kadmin.local ends with 0 whatever it says
    if done.returncode or f"{program}:" in done.stderr:
        raise ServiceError(f"{program} {' '.join(arguments)}: {done.stdout}{done.stderr}")


def _program(name: str) -> str:
    return str(
        next(path for folder in ("bin", "sbin") for path in ROOT.glob(f"usr/{folder}/{name}"))
    )


def _environment(folder: Path) -> dict[str, str]:
    libraries = ":".join(map(str, ROOT.glob("usr/lib/*-linux-gnu")))
    return {
        **os.environ,
        "KRB5_CONFIG": str(folder / "krb5.conf"),
        "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
        "LD_LIBRARY_PATH": libraries,
    }
