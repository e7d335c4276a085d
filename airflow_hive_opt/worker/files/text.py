"""Reads columns of a text file as Hive's LazySimpleSerDe does."""

from __future__ import annotations

import bz2
import gzip
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.worker.files.columns import FileColumns
from airflow_hive_opt.worker.unanswered import NotUnderstood, Unanswered

if TYPE_CHECKING:
    import pyarrow as pa

_SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
_CODECS = re.compile(r"\.(?:gz|bz2|deflate|snappy|zst|zstd|lz4|lzo|lzo_deflate|xz|zip|Z)$", re.I)
_OPENED: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open}


@dataclass(frozen=True)
class Separators:
    """How a file is split: the bytes between columns, the text for NULL, and the escape, if any."""

    field: bytes
    null: str
    escape: bytes = b""


def separators(storage: Storage) -> Separators:
    r"""The separators of a table; raises :class:`NotUnderstood` for other ways of splitting.

    >>> separators(Storage("", "text", _SERDE, {"field.delim": "|"})).field
    b'|'
    >>> separators(Storage("", "text", _SERDE)).field
    b'\x01'
    """
    if storage.serde != _SERDE:  # without one, it is Spark's own format of whole lines
        raise NotUnderstood(
            f"the SerDe {storage.serde}" if storage.serde else "Spark's own text format"
        )
    # Hive puts the table's parameters over those of the SerDe
    own = {name.lower(): value for name, value in storage.parameters.items()}
    found = {**storage.properties, **own}
    line = found.get("line.delim", "\n")
    if line != "\n":
        raise NotUnderstood("text files whose lines do not end in a newline (line.delim)")
    for name in ("skip.header.line.count", "skip.footer.line.count"):
        if int(found.get(name) or 0):
            raise NotUnderstood(f"text files with lines to skip ({name})")
    for name in (
        "serialization.encoding",
        "serialization.last.column.takes.rest",
        "textinputformat.record.delimiter",
        "hive.lazysimple.extended_boolean_literal",
    ):
        if found.get(name, "").lower() not in ("", "utf-8", "utf8", "false"):
            raise NotUnderstood(f"the SerDe property {name}")
    field = _byte(found.get("field.delim") or found.get("serialization.format") or "1")
    escape = _byte(found["escape.delim"]) if found.get("escape.delim") else b""
    if field in (b"\n", b"\r", escape):
        raise NotUnderstood("a newline or the escape character as field.delim")
    return Separators(field, found.get("serialization.null.format", "\\N"), escape)


def _byte(written: str) -> bytes:
    """The byte that Hive reads in a property: its number, or else its first character."""
    if re.fullmatch(r"[+-]?\d{1,3}", written):
        number = int(written)
        if 0 <= number <= 127:
            return bytes([number])
    elif written[0].isascii():
        return written[0].encode()
    raise NotUnderstood("a field.delim or escape.delim that is no ASCII character")


def read_text(
    file: Any, path: str, wanted: Sequence[str], names: Sequence[str], by: Separators, most: int
) -> FileColumns:
    """The ``wanted`` columns as texts, with NULL where the file has it, and its number of rows.

    ``names`` are all data columns of the table, ``most`` is the maximum number of bytes.
    """
    from pyarrow import csv

    data = _content(file, path, most)
    _check(data, by)
    at_least_one = list(wanted) or [names[0]]
    table = csv.read_csv(
        io.BytesIO(data),
        read_options=csv.ReadOptions(use_threads=False, column_names=list(names)),
        parse_options=csv.ParseOptions(
            delimiter=by.field.decode(),
            quote_char=False,
            escape_char=False,
            newlines_in_values=False,
            ignore_empty_lines=False,
        ),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(at_least_one, _string()),
            include_columns=at_least_one,
            null_values=[by.null],
            strings_can_be_null=True,
        ),
    )
    return {name: table.column(name) for name in wanted}, table.num_rows


def _string() -> pa.DataType:
    import pyarrow as pa

    return pa.string()


def _content(file: Any, path: str, most: int) -> bytes:
    codec = _CODECS.search(path)
    if codec is None:
        data = file.read(most + 1)
    else:
        opened = _OPENED.get(codec[0])
        if opened is None:
            raise Unanswered(f"the worker does not read files compressed as {codec[0]}")
        with opened(file) as plain:
            data = plain.read(most + 1)
    if len(data) > most:
        raise Unanswered(f"a text file is too large: it has more than {most} bytes")
    return bytes(data)


def _check(data: bytes, by: Separators) -> None:
    """Raises :class:`Unanswered` for bytes that Hive and Spark may read differently."""
    if data.startswith(b"\xef\xbb\xbf"):
        raise Unanswered(
            "a text file begins with a byte order mark, which the worker does not read"
        )
    if data.count(b"\r") != data.count(b"\r\n"):
        raise Unanswered(
            "a text file has a carriage return in a line, which the worker does not read"
        )
    if by.escape and by.escape in data:
        edge = b"[\n" + re.escape(by.field) + b"]"
        null = re.escape(by.null.encode())
        whole = re.findall(b"(?:^|(?<=%b))%b(?=\r?$|\r?%b)" % (edge, null, edge), data)
        if len(whole) * by.null.encode().count(by.escape) != data.count(by.escape):
            raise Unanswered("a text file has escaped characters, which the worker does not decode")


def text_of_null(hive: str) -> str:
    """A regular expression for texts that Hive reads as NULL in a column of the type.

    For example, letters are no number. It does not match all such texts.
    """
    if hive == "string" or "char" in hive:
        return ""
    return "" if hive == "boolean" else "[A-Za-z_]*"
