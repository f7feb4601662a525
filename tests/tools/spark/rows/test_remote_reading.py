# SPDX-License-Identifier: Apache-2.0
"""The source over an object store: the same rows as from a disk."""

import pytest

from tests.golden_files import GOLDEN
from tests.object_store import ObjectStore
from tests.tools.spark import source_reads

BROKER = GOLDEN / "data-topics/data/n1"


@pytest.mark.parametrize("view", ["records", "control"])
def test_remote_rows_are_local_ones(object_store: ObjectStore, view: str) -> None:
    """A topic with transactions, read from a bucket in small splits, has the rows that it has on a disk."""
    bucket = f"source-{view}"
    object_store.upload(BROKER, bucket)
    local, remote = (
        source_reads.rows(path, view=view, subscribe="txn", splitSize="1k", kafka_isolation_level="read_committed")
        for path in (BROKER, object_store.uri(bucket))
    )
    assert local
    assert [row | {"file": None} for row in remote] == [row | {"file": None} for row in local]
