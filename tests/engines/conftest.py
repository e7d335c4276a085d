"""A catalog with a partitioned table, for all engines."""

from __future__ import annotations

import pytest

from tests.services.glue_stand_in import glue_stand_in


@pytest.fixture(scope="module")  # the stand-in of another file empties this one
def lake(tmp_path_factory):
    pytest.importorskip("moto")  # environments of other versions do not have it
    from tests.engines.tables import make

    with glue_stand_in() as stand_in:
        yield make(tmp_path_factory.mktemp("lake"), stand_in)
