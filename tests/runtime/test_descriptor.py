import dataclasses
import gzip
import json
import tracemalloc

import pytest
from upath import UPath

from airflow_hive_opt.runtime.descriptor import (
    Decision,
    Descriptor,
    DescriptorError,
    SourceKeys,
    Target,
    decode,
    encode,
    query_digest,
    read,
    write,
)
from airflow_hive_opt.runtime.partitions import Partition

QUERY = query_digest("SELECT 1", {"a": 1})


def descriptor(partitions: int = 2) -> Descriptor:
    target = Target(
        alias="s",
        table="default.sales",
        text="sales",
        aliased=True,
        reference=(14, 19),
        columns=("ds", "hr"),
        types=("string", "int"),
        pruned_columns=("ds",),
        visible_columns=("day",),
        path="fast",
        filter="`s`.`ds` IN ('a')",
        location="file:/warehouse/sales",
        partitions=tuple(
            Partition((f"é'\"\\ {n}", None), f"file:/x/{n}", n, None) for n in range(partitions)
        ),
        total=10_000,
        sources=(SourceKeys(("d",), "days", "SELECT DISTINCT d.ds FROM days d", 3),),
    )
    decision = Decision("s", "default.sales", "PRUNED", "why")
    return Descriptor(QUERY, "2026-01-31T00:00:00+00:00", (target,), (decision,))


@pytest.fixture
def path(tmp_path) -> UPath:
    return UPath(tmp_path) / "dag" / "1.json"


def test_comes_back_as_it_went(path):
    write(descriptor(), path)
    assert read(path, QUERY, descriptor().digest) == descriptor()
    assert json.loads(path.read_text())["targets"][0]["total"] == 10_000


def test_a_large_one_is_compressed(path):
    large = descriptor(10_000)
    write(large, path)
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    assert path.stat().st_size < 200_000
    assert read(path, QUERY, large.digest) == large


def test_writing_and_reading_take_little_beside_the_text():
    large = descriptor(20_000)
    size = len(gzip.decompress(encode(large)))
    document = encode(dataclasses.replace(large))  # whose digest was not counted yet
    peaks = []
    for work in (lambda: encode(dataclasses.replace(large)), lambda: decode(document)):
        tracemalloc.start()
        work()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    written, read_again = peaks
    assert written < 5 * size
    assert read_again < 12 * size  # the partitions themselves are most of it


def test_any_storage_of_fsspec_will_do():
    path = UPath("memory://descriptors/run/1.json")
    write(descriptor(), path)
    assert read(path, QUERY) == descriptor()


def test_nothing_is_left_of_a_failed_write(tmp_path, monkeypatch):
    path = UPath(tmp_path) / "1.json"
    monkeypatch.setattr("os.replace", _full_disk)
    monkeypatch.setattr("shutil.move", _full_disk)
    monkeypatch.setattr("os.rename", _full_disk)
    with pytest.raises(DescriptorError, match="can't write .*No space left"):
        write(descriptor(), path)
    assert not path.exists()


def _full_disk(*_args, **_kwargs):
    raise OSError(28, "No space left on device")


def test_an_unwritable_place(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DescriptorError, match="can't write"):
        write(descriptor(), UPath(tmp_path) / "file" / "1.json")


@pytest.mark.parametrize("length", [0, 1, 20, 500, -2, -1])
def test_cut_short(path, length):
    write(descriptor(), path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DescriptorError, match="is refused"):
        read(path, QUERY)


@pytest.mark.parametrize("length", [1, 2, 30, -1])
def test_cut_short_when_compressed(length):
    data = encode(descriptor(10_000))
    with pytest.raises(DescriptorError):
        decode(data[:length])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sha256": "0" * 64}, "digest does not fit"),
        ({"created": "2027-01-01T00:00:00+00:00"}, "digest does not fit"),
        ({"sha256": None}, "digest does not fit"),
        ({"version": 3}, "version is 3, this package reads version 4"),
        ({"version": None}, "version is None"),
    ],
)
def test_altered(change, message):
    document = {**json.loads(encode(descriptor())), **change}
    with pytest.raises(DescriptorError, match=message):
        decode(json.dumps(document).encode())


@pytest.mark.parametrize("data", [b"[]", b"1", b"null", b"\xff\xfe", gzip.compress(b"no json")])
def test_no_descriptor_at_all(data):
    with pytest.raises(DescriptorError):
        decode(data)


def test_of_another_statement_or_attempt(path):
    write(descriptor(), path)
    with pytest.raises(DescriptorError, match="belongs to another statement"):
        read(path, query_digest("SELECT 1", {"a": 2}))
    with pytest.raises(DescriptorError, match="another task's or attempt's"):
        read(path, QUERY, dataclasses.replace(descriptor(), created="later").digest)


def test_a_missing_one(path):
    with pytest.raises(DescriptorError, match="can't read the descriptor"):
        read(path, QUERY)
