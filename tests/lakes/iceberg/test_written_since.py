"""Whether a table of this format has been written to since a statement began."""

from __future__ import annotations

from tests.lakes.written_since import check_that_it_tells


def test_a_table_tells_whether_it_has_been_written_to(lake):
    check_that_it_tells(lake, "lake.since", "iceberg")
