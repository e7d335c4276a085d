"""``IcebergCatalogHook``: the tables of an Iceberg catalog, from an Airflow connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hive_opt.get_provider_info import ui_field_behaviour
from airflow_hive_opt.provider.airflow_compat import (
    AirflowFailException,
    AirflowNotFoundException,
    BaseHook,
)

if TYPE_CHECKING:
    from airflow_hive_opt.metastores.iceberg.catalog import IcebergTables
    from airflow_hive_opt.provider.airflow_compat import Connection


_TYPES = ("rest", "sql", "hive", "glue")
_PATIENCE = 20  # seconds, for the form's button


class IcebergCatalogHook(BaseHook):
    """Reads the catalog of an ``iceberg`` connection with PyIceberg.

    The connection has the fields of Airflow's Iceberg provider, whose connections work here too.
    Host is the catalog's URI. Login and password are the credential of a REST catalog, or the user
    of a ``sql`` catalog's database. Extra has PyIceberg's other properties. Its ``type`` is
    ``rest`` by default, else ``sql``, ``hive`` or ``glue``.

    :param catalog_conn_id: ID of the connection.
    :param timeout: limit for a check of a table, in seconds.
    """

    conn_name_attr = "catalog_conn_id"
    default_conn_name = "iceberg_default"
    conn_type = "iceberg"
    hook_name = "Iceberg"

    def __init__(self, catalog_conn_id: str = default_conn_name, timeout: float = 300) -> None:
        super().__init__()
        self.catalog_conn_id = catalog_conn_id
        self.timeout = timeout

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """The fields of the connection's form."""
        return ui_field_behaviour(cls.conn_type)

    def _connection(self) -> Connection:
        try:
            return self.get_connection(self.catalog_conn_id)
        except AirflowNotFoundException:
            raise AirflowFailException(
                f"there is no connection {self.catalog_conn_id!r}: add it under Admin > "
                "Connections, with the type Iceberg"
            ) from None

    def get_conn(self) -> IcebergTables:
        """The catalog's tables; connects at their first use. Raises ``AirflowFailException``."""
        return tables_of(self._connection(), self.timeout)

    def test_connection(self) -> tuple[bool, str]:
        """Whether the catalog answers, for the test button of the connection's form."""
        from airflow_hive_opt.metastores.lakes import CatalogError

        try:
            tables_of(self._connection(), min(self.timeout, _PATIENCE)).check()
        except (AirflowFailException, CatalogError) as error:
            return False, str(error)
        return True, "the catalog answers"


def tables_of(connection: Connection, timeout: float = 300) -> IcebergTables:
    """The tables of a connection's catalog.

    Raises ``AirflowFailException`` if the connection is not valid or PyIceberg is not installed.
    """
    from airflow_hive_opt.metastores.iceberg.catalog import IcebergTables
    from airflow_hive_opt.metastores.lakes import CatalogError

    try:
        return IcebergTables(_properties(connection), timeout)
    except (CatalogError, ValueError) as error:
        raise AirflowFailException(f"connection {connection.conn_id!r}: {error}") from None


def _properties(connection: Connection) -> dict[str, Any]:
    """PyIceberg's properties; raises ``ValueError`` if the connection is not valid."""
    if connection.conn_type != IcebergCatalogHook.conn_type:
        raise ValueError(f"its type is {connection.conn_type!r}, not 'iceberg'")
    found = {name: _as_text(value) for name, value in connection.extra_dejson.items()}
    kind = found.setdefault("type", "rest")
    if kind not in _TYPES:
        raise ValueError(f"the type in its extra must be {', '.join(_TYPES)}, not {kind!r}")
    if host := (connection.host or "").rstrip("/"):
        found["uri"] = host
    if kind in ("rest", "sql", "hive") and not found.get("uri"):
        raise ValueError("it names no host, which is the catalog's URI")
    login, password = connection.login, connection.password
    if kind == "rest" and (login or password):
        if not (login and password):
            raise ValueError("it has only one of login and password, but a credential is both")
        found["credential"] = f"{login}:{password}"
    if kind == "sql" and (login or password):
        found["uri"] = _with_user(found["uri"], login, password)
    return found


def _as_text(value: Any) -> Any:
    """A value of the extra as PyIceberg expects it: a text, or an object of texts."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (int, float)) else value


def _with_user(uri: str, login: str | None, password: str | None) -> str:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(uri)
    except ArgumentError:  # its text has the URI, which may have a password
        raise ValueError("its host is no database URI of SQLAlchemy") from None
    given = url.set(username=login or url.username, password=password or url.password)
    return given.render_as_string(hide_password=False)
