# SPDX-License-Identifier: Apache-2.0
"""The names of snapshot files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import InvalidSnapshotIdError
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import FileName, FileState
from raftlog.snapshot.paths import SnapshotName, parse_snapshot_name, partial_name, snapshot_name

ids = st.builds(OffsetAndEpoch, st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1))


@given(ids, st.from_regex(r"[0-9]{1,20}", fullmatch=True))
def test_names_are_taken_apart_again(snapshot_id: OffsetAndEpoch, digits: str) -> None:
    """The name of any snapshot, in any state, gives its id and state."""
    assert parse_snapshot_name(snapshot_name(snapshot_id)) == SnapshotName(snapshot_id, FileState.CURRENT)
    assert parse_snapshot_name(partial_name(snapshot_id, digits)) == SnapshotName(snapshot_id, FileState.PART)
    deleted = str(FileName.of_snapshot(snapshot_id, FileState.DELETED))
    assert parse_snapshot_name(deleted) == SnapshotName(snapshot_id, FileState.DELETED)


@given(st.text() | st.from_regex(r"[0-9-]{10,40}\.checkpoint(\.[a-z]+)?", fullmatch=True))
def test_any_name_is_taken_apart_or_is_none(name: str) -> None:
    """A name that is taken for a snapshot's is what the id and state give; parsing raises nothing."""
    parsed = parse_snapshot_name(name)
    if parsed is not None and parsed.state is FileState.CURRENT:
        assert name == snapshot_name(parsed.snapshot_id)


def test_kafka_names() -> None:
    """Offset and epoch have 20 and 10 digits, as Kafka writes them."""
    assert snapshot_name(OffsetAndEpoch(42, 3)) == "00000000000000000042-0000000003.checkpoint"
    assert partial_name(OffsetAndEpoch(42, 3), "17") == "00000000000000000042-0000000003-17.checkpoint.part"


@pytest.mark.parametrize(
    "name",
    [
        "00000000000000000042.snapshot",
        "00000000000000000042.log",
        "bootstrap.checkpoint",
        "leader-epoch-checkpoint",
        "00000000000000000042-0000000003.checkpoint.swap",
        "42-3.checkpoint",
        "",
    ],
)
def test_other_names_are_no_snapshots(name: str) -> None:
    """A producer snapshot, a segment, a small file or a name of other widths is not a snapshot's."""
    assert parse_snapshot_name(name) is None


@pytest.mark.parametrize(("offset", "epoch"), [(-1, 0), (0, -1), (2**63, 0), (0, 2**31)])
def test_ids_out_of_range_have_no_name(offset: int, epoch: int) -> None:
    """A negative or too large offset or epoch is refused."""
    with pytest.raises(InvalidSnapshotIdError):
        snapshot_name(OffsetAndEpoch(offset, epoch))


@pytest.mark.parametrize("digits", ["", "a", "-1", "1" * 21])
def test_a_part_needs_digits(digits: str) -> None:
    """A part is recognised by 1 to 20 digits."""
    with pytest.raises(InvalidSnapshotIdError):
        partial_name(OffsetAndEpoch(0, 0), digits)
