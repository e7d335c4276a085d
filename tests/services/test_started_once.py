"""Files that need the same server run in the same process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.services.started_once import server_of

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("file", "server"),
    [
        ("spark/test_connect.py", "connect_server"),
        ("spark/test_partition_cost.py", "metastore_service"),
        ("plugins/test_api.py", "web"),
        ("spark/test_values.py", None),
    ],
)
def test_each_test_file_is_grouped_by_the_server_it_needs(file, server):
    assert server_of(TESTS / file) == server
