"""An Iceberg catalog that PyIceberg reads: the required partitions that its tables do not have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Callable, TypeVar
from urllib.parse import quote, quote_plus, unquote, urlsplit

from airflow_hive_opt.metastores.iceberg.partitions import UnexpectedTableError, missing_from
from airflow_hive_opt.metastores.lakes import Absent, CatalogError
from airflow_hive_opt.metastores.required import Required
from airflow_hive_opt.metastores.time_limit import within

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

_Found = TypeVar("_Found")
NO_PYICEBERG = (
    "to wait for Iceberg tables or to index them, install PyIceberg: "
    "pip install 'airflow-hive-opt[iceberg]'"
)
# These metastores store names in lower case. PyIceberg passes them on as they are written.
_LOWER_CASE = ("hive", "glue")
_SECRET = re.compile(r"secret|token|password|credential|key|auth|sas|connection|header", re.I)


class IcebergTables:
    """The tables of one catalog.

    :param properties: PyIceberg's properties of the catalog. They may contain secrets.
    :param timeout: limit for a check, in seconds. PyIceberg's clients have none.

    Raises :class:`CatalogError` if PyIceberg is not installed. Connects at the first call.
    """

    def __init__(self, properties: Mapping[str, Any], timeout: float = 300) -> None:
        if find_spec("pyiceberg") is None:
            raise CatalogError(NO_PYICEBERG)
        self._properties = dict(properties)
        self._timeout = timeout
        self._catalogs: dict[str, Catalog] = {}
        self._earlier: dict[Required, tuple[str, Absent]] = {}

    def check(self) -> None:
        """Asks the catalog for its namespaces; raises :class:`CatalogError`."""
        self._in_time(lambda: self._catalog("default").list_namespaces())

    def close(self) -> None:
        """Closes the connections to the catalog; the next call opens new ones."""
        for catalog in self._catalogs.values():
            catalog.close()
        self._catalogs.clear()

    def absent(self, required: Required) -> Absent:
        """The required tuples that the table does not have at this time.

        A table that does not exist has none. Reads the files of the table's metadata only if the
        table has changed since the last call. Raises :class:`CatalogError`.
        """
        return self._in_time(partial(self._absent, required))

    def load(self, name: str) -> Table:
        """A table by its name on Spark, which begins with that of the catalog.

        Raises :class:`CatalogError`, also if there is no such table.
        """
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, ValidationError

        def loaded() -> Table:
            try:
                return self._table(name)
            except (NoSuchTableError, NoSuchNamespaceError):
                raise CatalogError(f"the catalog has no Iceberg table {name}") from None
            except ValidationError as error:
                raise _not_understood(name, error) from None

        return self._in_time(loaded)

    def _in_time(self, work: Callable[[], _Found]) -> _Found:
        """The result of ``work``, in time; raises :class:`CatalogError`."""

        def told() -> _Found:
            try:
                return work()
            except BaseException as error:  # noqa: BLE001 - whatever it is, it becomes words
                raise self._in_words(error) from None

        try:
            return within(self._timeout, told, "Iceberg catalog")
        except TimeoutError:
            raise CatalogError(
                f"the catalog or its storage has not answered in {self._timeout:g} s. Is it "
                "running, can this machine connect to it?"
            ) from None

    def _absent(self, required: Required) -> Absent:
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, ValidationError

        try:
            table = self._table(required.table)
            known = self._earlier.get(required)
            if known is not None and known[0] == table.metadata_location:
                return known[1]
            empty = table.current_snapshot() is None
            found = Absent(
                missing_from(table, required),
                f"the Iceberg table {required.table} is empty" if empty else "",
            )
        except (NoSuchTableError, NoSuchNamespaceError):
            _, _, name = required.table.partition(".")
            return Absent(required.tuples, f"the catalog has no Iceberg table {name}")
        except ValidationError as error:
            raise _not_understood(required.table, error) from None
        self._earlier[required] = table.metadata_location, found
        return found

    def _table(self, name: str) -> Table:
        catalog, *identifier = name.split(".")
        if self._properties.get("type") in _LOWER_CASE:
            identifier = [part.lower() for part in identifier]
        return self._catalog(catalog).load_table(tuple(identifier))

    def _catalog(self, name: str) -> Catalog:
        """The catalog. A database of the type ``sql`` has tables by the name of their catalog."""
        from pyiceberg.catalog import load_catalog

        if name not in self._catalogs:
            self._catalogs[name] = load_catalog(name, **self._properties)
        return self._catalogs[name]

    def _in_words(self, error: BaseException) -> CatalogError:
        """The first line of the error's text, with stars in place of secrets."""
        text = (str(error).strip() or type(error).__name__).splitlines()[0]
        for secret in sorted(set(_secrets(self._properties)), key=len, reverse=True):
            text = text.replace(secret, "***")
        return CatalogError(text if len(text) <= 500 else f"{text[:500]}...")


def _not_understood(table: str, error: Exception) -> UnexpectedTableError:
    return UnexpectedTableError(
        f"PyIceberg does not understand the metadata of {table}: {_why(error)}. "
        "Is the table newer than this PyIceberg?"
    )


def _why(error: Exception) -> str:
    r"""The message of an error, without the validated text that PyIceberg's errors quote.

    >>> _why(ValueError("1 validation error\n  no type 'x' [type=value_error, input_value='...'"))
    "no type 'x'"
    """
    head, *lines = str(error).partition(" [type=")[0].splitlines() or [""]
    return " ".join(line.strip() for line in lines) or head


def _secrets(properties: Any, inside: bool = False) -> Iterator[str]:
    """The values of properties that may be secrets, and the passwords in URIs."""
    if isinstance(properties, Mapping):
        for name, value in properties.items():
            yield from _secrets(value, inside or _SECRET.search(str(name)) is not None)
    elif isinstance(properties, Sequence) and not isinstance(properties, str):
        for value in properties:
            yield from _secrets(value, inside)
    elif inside and (text := str(properties)) and text.lower() not in ("true", "false"):
        for part in (text, *(part for part in re.split(r"[:\s]+", text) if len(part) > 3)):
            yield from (part, quote(part, safe=""), quote_plus(part))
    elif isinstance(properties, str):
        for secret in _secrets_of_uri(properties):
            yield from (secret, unquote(secret))


def _secrets_of_uri(uri: str) -> Iterator[str]:
    """The password, and the parameters that may be secrets, as the URI has them."""
    try:
        parts = urlsplit(uri)
        password = parts.password
    except ValueError:  # it is no URI
        return
    if password:
        yield password
    for pair in parts.query.split("&"):
        name, _, value = pair.partition("=")
        if value and _SECRET.search(name):
            yield value
