"""The common format of documents: what is written, read and refused."""

import gzip
import hashlib
import json
import tracemalloc
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from upath import UPath

from airflow_hive_opt.documents.format import MOST_BYTES, MOST_VALUES, Format
from airflow_hive_opt.documents.storage import DescriptorError, NothingThereError


@dataclass(frozen=True)
class Note:
    text: str
    more: Mapping[str, Any]


def no_secrets(note: Note) -> None:
    if note.text == "secret":
        raise ValueError("it is secret")


NOTES = Format("note", 2, Note, no_secrets)
OTHERS = Format("other note", 2, Note)
NOTE = Note("a\ud800é", {"n": [1, 1.5, None, True, {}], "1": "x"})


def sealed(text: str) -> bytes:
    """A document with this text for its field, and a seal that fits."""
    document = f'{{"kind":"note","version":2,"text":{text},"more":{{}}}}'
    seal = hashlib.sha256(document.encode()).hexdigest()
    return f'{document[:-1]},"sha256":"{seal}"}}'.encode()


def test_a_document_is_read_as_it_was_written(tmp_path):
    data = NOTES.encode(NOTE)
    assert NOTES.decode(data) == NOTE
    assert NOTES.decode(gzip.compress(data)) == NOTE
    document = json.loads(data)
    assert (document["kind"], document["version"]) == ("note", 2)
    assert document["sha256"] == NOTES.digest(NOTE)
    assert NOTES.decode(json.dumps(document).encode()) == NOTE  # however it is laid out
    assert NOTES.decode(sealed('"x"')) == Note("x", {})
    assert data.isascii()
    path = UPath(tmp_path) / "a" / "note.json"
    NOTES.write(NOTE, path)
    assert NOTES.read(path) == NOTE


def test_the_digest_covers_kind_version_and_content():
    newer = Format("note", 3, Note)
    digests = {form.digest(NOTE) for form in (NOTES, OTHERS, newer)}
    assert len(digests | {NOTES.digest(Note("b", {}))}) == 4


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (OTHERS.encode(NOTE), "its kind is 'other note', not 'note'"),
        (Format("note", 1, Note).encode(NOTE), "its version is 1, this package reads version 2"),
        (NOTES.encode(NOTE).replace(b"1.5", b"1.6"), "its digest does not match"),
        (NOTES.encode(NOTE)[:-3], "truncated or not JSON"),
        (gzip.compress(NOTES.encode(NOTE), mtime=0)[:-9], "truncated"),
        (gzip.compress(NOTES.encode(NOTE), mtime=0) + b"x", "data follows its end"),
        (b"\x1f\x8b" + b"x" * 50, "truncated or not JSON"),
        (b"", "truncated or not JSON"),
        (b"\xff\xfe{\x00}\x00", "truncated or not JSON"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"kind":' + b"[" * 100_000, "nested too deep"),
        (b"[]", "not a JSON object"),
        (b'{"version": 1' + b"0" * 5000 + b"}", "truncated or not JSON"),
        (b'{"version": NaN}', "truncated or not JSON"),
        (b'{"version": 2, "kind": "note", "text": 1e999}', "JSON can't represent"),
        (sealed("7"), "text must be a string, not an integer"),
        (sealed('"x","y":1'), "has a field that it must not have: 'y'"),
        (sealed('"secret"'), "it is secret"),
    ],
)
def test_invalid_documents_are_refused(data, message):
    with pytest.raises(DescriptorError, match=message):
        NOTES.decode(data)


@pytest.mark.parametrize(
    ("note", "message"),
    [
        (Note(7, {}), "text must be a string"),
        (Note("secret", {}), "it is secret"),
        (Note("", {"x": float("nan")}), "JSON can't represent"),
        (Note("", {"x": object()}), "JSON can't represent a value: object"),
        (Note("", {"x": 10**5000}), "JSON can't represent"),
        (Note("", {1: "a", "1": "b"}), "its digest does not match"),
        (Note("x" * MOST_BYTES, {}), "more than the limit of 67,108,864"),
    ],
)
def test_a_document_that_would_be_refused_is_not_written(note, message, tmp_path):
    path = UPath(tmp_path) / "note.json"
    with pytest.raises(DescriptorError, match=message):
        NOTES.write(note, path)
    assert not path.exists()


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


def test_a_document_that_is_nested_too_deeply_is_not_written():
    with pytest.raises(DescriptorError, match="nested too deep"):
        NOTES.encode(Note("", {"x": nested(100_000)}))


def bomb() -> bytes:
    """300 megabytes of zeros in some hundred kilobytes."""
    packing = zlib.compressobj(9, zlib.DEFLATED, 31)
    piece = b"0" * (1 << 20)
    return b"".join([*(packing.compress(piece) for _ in range(300)), packing.flush()])


def test_a_document_that_would_unpack_beyond_the_limit_is_not_unpacked():
    data = bomb()
    assert len(data) < MOST_BYTES / 100
    tracemalloc.start()
    with pytest.raises(DescriptorError, match="more than 67,108,864 bytes once it is unpacked"):
        NOTES.decode(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * MOST_BYTES


@pytest.mark.parametrize("item", ["{}", "[]", '{"a":1}', "1.5", '""', "[[[[]]]]"])
def test_a_document_with_too_many_small_values_is_refused(item):
    """Each takes many times its text in memory."""
    text = f"[{item}" + f",{item}" * ((MOST_BYTES - 100) // (len(item) + 1)) + "]"
    data = gzip.compress(text.encode(), 1)
    del text
    tracemalloc.start()
    with pytest.raises(DescriptorError):
        NOTES.decode(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * MOST_BYTES


def test_a_document_with_the_most_values_stays_in_the_memory_limit():
    """Seen on a tenth of them."""
    item = '{"a":1}'
    text = f"[{item}" + f",{item}" * (MOST_VALUES // 30) + "]"
    tracemalloc.start()
    with pytest.raises(DescriptorError, match="not a JSON object"):
        NOTES.decode(text.encode())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.8 * MOST_BYTES


def test_a_file_is_not_read_beyond_the_limit(tmp_path):
    path = UPath(tmp_path) / "note.json"
    with path.open("wb") as file:
        file.truncate(20 * MOST_BYTES)  # holes take no space
    tracemalloc.start()
    with pytest.raises(DescriptorError, match="can't read the note .* more than 67,108,864 bytes"):
        NOTES.read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * MOST_BYTES


def test_a_missing_document_is_an_error(tmp_path):
    with pytest.raises(NothingThereError, match="can't read the note .*: there is no such file"):
        NOTES.read(UPath(tmp_path) / "note.json")
