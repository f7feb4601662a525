# SPDX-License-Identifier: Apache-2.0
"""The changes that a watched image reports are those between its states, each once, with the record that made it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.messages.metadata import MetadataRecord
from raftlog.tools.image.changes import Change, watched_image
from raftlog.tools.image.cluster_image import ClusterImage, MetadataBatch
from raftlog.tools.image.tables import Tables
from tests.tools.image.metadata_stories import metadata_stories
from tests.tools.image.naive_cluster import described


def entries(tables: Tables) -> dict[Any, Any]:
    """All entries by their keys."""
    found: dict[Any, Any] = {}
    for name in ("features", "topics", "brokers", "controllers", "acls", "scram", "delegation_tokens", "producer_ids"):
        found |= {(name, key): entry for key, entry in getattr(tables, name).items()}
    for name in ("partitions", "configs", "quotas"):
        for owner, inner in getattr(tables, name).items():
            found |= {(name, owner, key): entry for key, entry in inner.items()}
    return found


@given(metadata_stories(), st.data())
def test_changes_make_the_later_state_of_the_earlier_one(
    story: tuple[list[MetadataBatch], list[list[MetadataRecord]]], data: st.DataObject
) -> None:
    """From any offset on, each change fits the entry before, and all make the state after."""
    batches, _ = story
    start = data.draw(st.integers(0, len(batches)))
    plain, earlier = ClusterImage(), ClusterImage()
    for batch in batches[:start]:
        plain.apply(batch)
        earlier.apply(batch)
    held = plain.end_offset
    changes: list[Change] = []
    image = watched_image(earlier, changes.append)
    state = entries(plain.tables)
    for batch in batches[start:]:
        plain.apply(batch)
        image.apply(batch)
        for change in changes:
            assert held <= change.offset < batch.next_offset
            assert change.timestamp == batch.timestamp
            assert state.pop(change.key, None) == change.before != change.after
            if change.after is not None:
                state[change.key] = change.after
        changes.clear()
        assert state == entries(image.tables) == entries(plain.tables)
        assert (image.refusals, image.end_offset, image.read_to) == (plain.refusals, plain.end_offset, plain.read_to)
    assert described(earlier.tables) == described(_after(batches[:start]).tables)


def _after(batches: list[MetadataBatch]) -> ClusterImage:
    image = ClusterImage()
    for batch in batches:
        image.apply(batch)
    return image
