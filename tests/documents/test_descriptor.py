"""The partition descriptor as a document: written, read, or refused."""

import dataclasses
import gzip
import json
import tracemalloc

import pytest
from upath import UPath

from airflow_hive_opt.documents.descriptor import (
    Decision,
    Descriptor,
    DescriptorError,
    NewPartitions,
    RowFilter,
    SourceKeys,
    Target,
    decode,
    encode,
    query_digest,
    read,
    write,
)
from airflow_hive_opt.documents.key_tuples import KeyTuples
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.statement.scan_ref import ScanRef

QUERY = query_digest("SELECT 1", {"a": 1})
SALES = ScanRef("s", "default.sales", (14, 19), "s")


def descriptor(partitions: int = 2) -> Descriptor:
    target = Target(
        scan=SALES,
        text="sales",
        aliased=True,
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
    decision = Decision(SALES, "PRUNED", "why")
    return Descriptor(QUERY, "2026-01-31T00:00:00+00:00", (target,), (decision,))


@pytest.fixture
def path(tmp_path) -> UPath:
    return UPath(tmp_path) / "dag" / "1.json"


def test_a_descriptor_is_read_as_it_was_written(path):
    write(descriptor(), path)
    assert read(path, QUERY, descriptor().digest) == descriptor()
    assert json.loads(path.read_text())["targets"][0]["total"] == 10_000


def test_a_large_descriptor_is_compressed(path):
    large = descriptor(10_000)
    write(large, path)
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    assert path.stat().st_size < 200_000
    assert read(path, QUERY, large.digest) == large


def test_writing_and_reading_a_large_descriptor_need_little_memory():
    large = descriptor(20_000)
    size = len(gzip.decompress(encode(large)))
    document = encode(large)
    peaks = []
    for work in (lambda: encode(large), lambda: decode(document)):
        tracemalloc.start()
        work()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(peaks) < 12 * size  # the partitions themselves are most of it


def test_a_descriptor_may_be_in_any_storage_of_fsspec():
    path = UPath("memory://descriptors/run/1.json")
    write(descriptor(), path)
    assert read(path, QUERY) == descriptor()


@pytest.mark.parametrize("length", [0, 1, 20, 500, -2, -1])
def test_a_truncated_descriptor_is_refused(path, length):
    write(descriptor(), path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DescriptorError, match="is refused"):
        read(path, QUERY)


@pytest.mark.parametrize("length", [1, 2, 30, -1])
def test_a_truncated_compressed_descriptor_is_refused(length):
    data = encode(descriptor(10_000))
    with pytest.raises(DescriptorError):
        decode(data[:length])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sha256": "0" * 64}, "digest does not match"),
        ({"created": "2027-01-01T00:00:00+00:00"}, "digest does not match"),
        ({"sha256": None}, "digest does not match"),
        ({"version": 4}, "version is 4, this package reads version 17"),
        ({"version": None}, "version is None"),
        ({"version": True}, "version is True"),
        ({"kind": "job"}, "kind is 'job', not 'descriptor'"),
    ],
)
def test_an_altered_descriptor_is_refused(change, message):
    document = {**json.loads(encode(descriptor())), **change}
    with pytest.raises(DescriptorError, match=message):
        decode(json.dumps(document).encode())


def test_a_descriptor_of_an_earlier_version_without_kind_is_refused():
    document = json.loads(encode(descriptor()))
    del document["kind"]
    with pytest.raises(DescriptorError, match="its digest does not match"):
        decode(json.dumps(document).encode())
    with pytest.raises(DescriptorError, match="version is 4"):
        decode(json.dumps({**document, "version": 4}).encode())


def one(**changes) -> Descriptor:
    (target,) = descriptor().targets
    return dataclasses.replace(descriptor(), targets=(dataclasses.replace(target, **changes),))


def new(column: str, *values: str) -> NewPartitions:
    return NewPartitions((KeyTuples((column,), (values,)),), ())


def test_the_keys_for_new_partitions_are_read_as_they_were_written(path):
    added = dataclasses.replace(
        new("ds", "a", "b"),
        left_out=(("a", None),),
        left_out_by_names=(("b", "1"),),
        names={"t": "0"},
    )
    write(one(new_partitions=(added, new("hr", "7"))), path)
    (target,) = read(path, QUERY).targets
    assert target.new_partitions == (added, new("hr", "7"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (one(types=("string",)), "does not have one type for each column"),
        (one(partitions=(Partition(("a",)),)), "does not have one value for each column"),
        (one(pruned_columns=("x",)), "is pruned by columns that it does not have"),
        (
            dataclasses.replace(
                descriptor(),
                row_filters=(
                    RowFilter(
                        *(SALES, "sales", True, "day", "date"),
                        ("2026-01-01",),
                        True,
                        SourceKeys(("d",), "days", "SELECT 1", 1),
                    ),
                ),
            ),
            "the ranges of day do not have two values each",
        ),
        (one(new_partitions=(new("day", "a"),)), "has keys of columns that it does not have"),
        (one(new_partitions=(new("hr", "7", "x"),)), "a value is no int: 'x'"),
    ],
)
def test_a_descriptor_with_inconsistent_fields_is_not_written(wrong, message):
    with pytest.raises(DescriptorError, match=message):
        encode(wrong)


@pytest.mark.parametrize(
    "data", [b"[]", b"1", b"null", b"\xff\xfe", gzip.compress(b"no json", mtime=0)]
)
def test_bytes_that_are_no_descriptor_are_refused(data):
    with pytest.raises(DescriptorError):
        decode(data)


def test_a_descriptor_of_another_statement_or_attempt_is_refused(path):
    write(descriptor(), path)
    with pytest.raises(DescriptorError, match="belongs to another statement"):
        read(path, query_digest("SELECT 1", {"a": 2}))
    with pytest.raises(DescriptorError, match="another task's or attempt's"):
        read(path, QUERY, dataclasses.replace(descriptor(), created="later").digest)


def test_a_missing_descriptor_is_an_error(path):
    with pytest.raises(DescriptorError, match="can't read the descriptor"):
        read(path, QUERY)
