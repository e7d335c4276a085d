from __future__ import annotations

import pytest

pytest.importorskip("pyiceberg")  # environments of other versions do not have it

from pyiceberg.catalog import load_catalog
from upath import UPath


@pytest.fixture
def root(tmp_path):
    """The ``index_path``."""
    return UPath(tmp_path / "indexes")


@pytest.fixture
def properties(tmp_path):
    return {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"file://{tmp_path}/warehouse",
    }


@pytest.fixture
def catalog(properties):
    made = load_catalog("lake", **properties)
    made.create_namespace("dw")
    return made
