"""The common format of documents that one process writes and another process reads.

A document is one JSON object in ASCII: ``kind``, ``version``, the fields of its content, and
``sha256`` over all of these. A large document is compressed with gzip. It is data, never code. The
reader refuses a document that is truncated, altered, of another kind or version, or that has a
field of another type.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Generic, NoReturn, TypeVar

from airflow_hive_opt.documents.storage import (
    DescriptorError,
    StoragePath,
    read_bounded,
    write_atomically,
)
from airflow_hive_opt.documents.typed_json import reader

MOST_BYTES = 64 * 1024 * 1024
"""The largest size of a file, and of its content after decompression."""

MOST_VALUES = 5_000_000
"""The approximate limit of values, keys and containers; each takes up to 70 bytes in memory."""

_GZIP_ABOVE_BYTES = 64 * 1024
# A larger document is not indented: nobody reads it line by line, and indenting makes writing ten
# times slower.
_INDENT_UP_TO_BYTES = 256 * 1024
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS

Content = TypeVar("Content")


class RefusedDocument(DescriptorError):
    """A document that is there and can't be trusted; reading it again does not help."""


@dataclass(frozen=True)
class Format(Generic[Content]):
    """A kind of document: its name, its version, and the data class of its content.

    The class's type hints define the fields' types, see
    :mod:`~airflow_hive_opt.documents.typed_json`. ``check`` raises ``ValueError`` if fields
    contradict each other.
    """

    kind: str
    version: int
    content: type[Content]
    check: Callable[[Content], None] = lambda _: None

    def digest(self, content: Content) -> str:
        """The document's ``sha256``, in hexadecimal; raises :class:`DescriptorError`."""
        return _digest(_json(self._document(content)))

    def text(self, content: Content) -> str:
        """The document as text; raises :class:`DescriptorError` if :meth:`decode` refuses it."""
        text = _json(self._document(content))
        text = f'{text[:-1]},"sha256":"{_digest(text)}"}}'
        if len(text) > MOST_BYTES:
            raise DescriptorError(
                f"the {self.kind} has {len(text):,} bytes, more than the limit of {MOST_BYTES:,}"
            )
        document = _parsed(text)
        if len(text) <= _INDENT_UP_TO_BYTES:
            text = _json(document, indent=1)
        self._content_of(document)
        return text

    def encode(self, content: Content) -> bytes:
        """The text as bytes, compressed if it is large; raises :class:`DescriptorError`."""
        data = self.text(content).encode("ascii")
        return gzip.compress(data, mtime=0) if len(data) > _GZIP_ABOVE_BYTES else data

    def decode(self, data: bytes) -> Content:
        """The content of a document; raises :class:`DescriptorError` if it is not valid."""
        return self._content_of(_parsed(_unpacked(data)))

    def write(self, content: Content, path: StoragePath) -> None:
        """Writes the document atomically.

        Raises :class:`~airflow_hive_opt.documents.storage.DescriptorError`.
        """
        write_atomically(self.encode(content), path)

    def read(self, path: StoragePath) -> Content:
        """The content of the document at ``path``.

        Raises :class:`~airflow_hive_opt.documents.storage.NothingThereError` if there is no file,
        ``RefusedDocument`` for one that is not valid, and
        :class:`~airflow_hive_opt.documents.storage.DescriptorError` for all other failures.
        """
        data = read_bounded(path, MOST_BYTES, f"the {self.kind}")
        try:
            return self.decode(data)
        except DescriptorError as error:
            raise RefusedDocument(f"the {self.kind} {path} is refused: {error}") from error

    def _document(self, content: Content) -> dict[str, Any]:
        """The fields by name, without copies of their values."""
        own = {field.name: getattr(content, field.name) for field in fields(content)}  # type: ignore[arg-type]
        return {"kind": self.kind, "version": self.version, **own}

    def _content_of(self, document: Any) -> Content:
        if not isinstance(document, dict):
            raise DescriptorError("it is not a JSON object")
        found = document.get("version")
        if document.get("kind", self.kind) != self.kind:
            raise DescriptorError(f"its kind is {_shown(document['kind'])}, not {self.kind!r}")
        if type(found) is not int or found != self.version:
            raise DescriptorError(
                f"its version is {_shown(found)}, this package reads version {self.version}: "
                "the writer and the reader must have the same package version"
            )
        seal = document.pop("sha256", None)
        if "kind" not in document or seal != _digest(_json(document)):
            raise DescriptorError(
                "its digest does not match its content: it was changed or truncated"
            )
        del document["kind"], document["version"]
        type_: Any = self.content
        try:
            content: Content = reader(type_)(document)
            self.check(content)
        except ValueError as error:  # its text may contain text of the document
            message = str(error).encode(errors="backslashreplace").decode()
            raise DescriptorError(message) from error
        return content


def _json(document: object, indent: int | None = None) -> str:
    """JSON in ASCII, which can also represent text that is not valid Unicode."""
    separators = None if indent else (",", ":")
    try:
        return json.dumps(
            document, indent=indent, separators=separators, allow_nan=False, default=_fields
        )
    except (TypeError, ValueError) as error:
        raise DescriptorError(f"JSON can't represent a value: {error}") from error
    except RecursionError:
        _refuse_depth()


def _fields(value: object) -> dict[str, Any]:
    if is_dataclass(value):
        return vars(value)
    raise TypeError(f"{type(value).__name__} is none of its types")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _parsed(text: str) -> Any:
    if sum(map(text.count, "[{,:")) > MOST_VALUES:  # 2 bytes of text may take 60 bytes of memory
        raise DescriptorError(f"it has more than {MOST_VALUES:,} values")
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        _refuse_depth()
    except ValueError as error:  # not JSON, or a number with thousands of digits
        raise DescriptorError("it is truncated or not JSON") from error


def _unpacked(data: bytes) -> str:
    """The text in ``data``, decompressed up to the size limit."""
    if len(data) > MOST_BYTES:
        raise DescriptorError(f"it has more than {MOST_BYTES:,} bytes")
    try:
        if data[:2] != _GZIP_MAGIC:
            return data.decode()
        unpacking = zlib.decompressobj(_GZIP_WINDOW)
        text = unpacking.decompress(data, MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise DescriptorError(f"it has more than {MOST_BYTES:,} bytes once it is unpacked")
        if not unpacking.eof or unpacking.unused_data:
            raise DescriptorError("it is truncated, or data follows its end")
        return text.decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise DescriptorError("it is truncated or not JSON") from error


def _refuse_depth() -> NoReturn:
    raise DescriptorError("its values are nested too deeply") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _shown(value: object) -> str:
    """The start of a value for an error message; a number may have thousands of digits."""
    try:
        return ascii(value)[:50]
    except (ValueError, RecursionError):
        return type(value).__name__
