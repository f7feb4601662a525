# SPDX-License-Identifier: Apache-2.0
"""States are found at every offset, whatever they begin with; offsets and times without a state are errors."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from raftlog.errors import StateNotThereError
from raftlog.tools.image.changes import Change
from raftlog.tools.state.positions import Position, parse_position
from raftlog.tools.state.state_search import State, earliest, find_changes, find_state
from tests.golden_files import GOLDEN
from tests.tools.image.naive_cluster import described, naive_state
from tests.tools.image.test_cluster_image import dumped
from tests.tools.state.made_metadata import (
    BEGIN,
    END,
    PARTITION,
    SHRINK,
    TOPIC,
    VERSION,
    found_copies,
    metadata_log,
)

CORPORA = {
    "dynamic-quorum": GOLDEN / "dynamic-quorum/data",
    "static-upgrade": GOLDEN / "static-upgrade/data",
    "wire": GOLDEN / "wire/data",
    "data-topics": GOLDEN / "data-topics/data",
    "groups": GOLDEN / "groups/data",
    "killed": GOLDEN / "killed/data",
}
"""The directories of each cluster."""


def kafka_says(corpus: Path) -> list[tuple[int, list[Any]]]:
    """The batches of a cluster's longest log, as Kafka's tool printed them; each cluster here has one from offset 0."""
    folder = next(each for each in (corpus, *corpus.parents) if (each / "expected").exists())
    place = "" if corpus == folder / "data" else f"{corpus.name}."
    found: dict[str, dict[int, list[Any]]] = {}
    starts: dict[str, set[str]] = {}
    for dump in (folder / "expected").glob(f"{place}*__cluster_metadata-0.*.log.metadata.txt"):
        node = dump.name.partition(".__cluster")[0]
        found.setdefault(node, {}).update(dumped(dump))
        starts.setdefault(node, set()).add(dump.read_text().splitlines()[1])
    whole = [batches for node, batches in found.items() if "Log starting offset: 0" in starts[node]]
    return sorted(max(whole, key=max).items())


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=CORPORA)
def test_the_state_at_every_offset_is_what_kafkas_records_make_from_scratch(corpus: Path) -> None:
    """From log and snapshots of all nodes together: at the ends of batches there, and inside one as before it."""
    copies, _ = found_copies(corpus)
    batches = kafka_says(corpus)
    assert max(copy.end for copy in copies) == batches[-1][0]
    snapshots = set()
    for copy in copies:
        records: list[Any] = []
        end_before = 0
        for end, of_batch in batches:
            if end > copy.end:
                break
            for offset in range(end_before, end + 1):
                if earliest(copy).offset <= offset:  # type: ignore[operator]
                    state = find_state([copy], Position(offset=offset))
                    expected = records + (of_batch if offset == end else [])
                    assert state.image.end_offset == (end if offset == end else end_before)
                    assert state.is_inside_batch == (end_before < offset < end)
                    assert described(state.image.tables) == naive_state(expected)
                    snapshots.add(state.snapshot)
            records += of_batch
            end_before = end
    assert len(snapshots) > 0


def ends(copies: Sequence[Any], text: str) -> tuple[int, int]:
    """The end of the state at a position, and the offset that was asked for."""
    state = find_state(copies, parse_position(text))
    return state.image.end_offset, state.asked_offset


def test_an_offset_inside_a_batch_has_the_state_before_it(tmp_path: Path) -> None:
    """A batch is whole at its end, and not there one offset before."""
    copies, _ = found_copies(metadata_log(tmp_path, [VERSION], [TOPIC, PARTITION, SHRINK]))
    assert [ends(copies, str(offset))[0] for offset in range(5)] == [0, 1, 1, 1, 4]
    assert find_state(copies, parse_position("3")).is_inside_batch
    assert not find_state(copies, parse_position("1")).is_inside_batch


def test_an_offset_inside_a_transaction_has_the_state_before_it(tmp_path: Path) -> None:
    """The state before the record that begins it, although a record precedes that one in its batch."""
    copies, _ = found_copies(metadata_log(tmp_path, [VERSION], [VERSION, BEGIN], [TOPIC], [PARTITION, END], [SHRINK]))
    assert [ends(copies, str(offset))[0] for offset in range(8)] == [0, 1, 1, 2, 2, 2, 6, 7]
    assert find_state(copies, parse_position("4")).image.transaction is not None
    assert not find_state(copies, parse_position("4")).image.tables.topics
    assert find_state(copies, parse_position("6")).image.tables.topics


def test_negative_numbers_count_from_the_end(tmp_path: Path) -> None:
    """No offset is the end, as many as there are is the start, one more is an error."""
    copies, _ = found_copies(metadata_log(tmp_path, [VERSION], [TOPIC], [PARTITION]))
    assert [ends(copies, text) for text in ("-0", "-1", "-3")] == [(3, 3), (2, 2), (0, 0)]
    assert find_state(copies, Position()).asked_offset == 3
    with pytest.raises(StateNotThereError, match="the log has 3 offsets, not 4"):
        find_state(copies, parse_position("-4"))


def test_an_offset_after_the_end_is_an_error(tmp_path: Path) -> None:
    """At the end there is a state, one after it there is none."""
    copies, _ = found_copies(metadata_log(tmp_path, [VERSION], [TOPIC]))
    assert ends(copies, "2") == (2, 2)
    with pytest.raises(
        StateNotThereError, match="offset 3 is after the end: log and snapshots have states from offset 0 to 2"
    ):
        find_state(copies, parse_position("3"))


def test_times_where_a_clock_goes_back(tmp_path: Path) -> None:
    """The state has what precedes the first batch that is later; what follows with an earlier time is counted."""
    log = metadata_log(tmp_path, [VERSION], [TOPIC], [PARTITION], [SHRINK], times=[10_000, 30_000, 20_000, 40_000])
    copies, _ = found_copies(log)

    def at(time_ms: int) -> tuple[int, int]:
        state = find_state(copies, Position(time_ms=time_ms))
        return state.image.end_offset, state.later_times

    assert [at(time) for time in (10_000, 20_000, 29_999)] == [(1, 0), (1, 1), (1, 1)]
    assert [at(time) for time in (30_000, 39_999, 40_000, 99_999)] == [(3, 0), (3, 0), (4, 0), (4, 0)]
    with pytest.raises(StateNotThereError, match="before the first record of the log"):
        at(9_999)


def test_a_log_that_starts_above_zero_begins_with_a_snapshot() -> None:
    """Below its first snapshot there is no state; at it there is one, and at every offset after it."""
    copies, _ = found_copies(GOLDEN / "wire/data/n4")
    first = earliest(copies[0]).offset
    assert first is not None
    assert first > 0
    with pytest.raises(StateNotThereError, match=f"no state at offset {first - 1}: .* from offset {first} to "):
        find_state(copies, Position(offset=first - 1))
    state = find_state(copies, Position(offset=first))
    assert state.snapshot is not None
    assert (state.snapshot.offset, state.image.end_offset) == (first, first)
    time = state.image.timestamp
    assert find_state(copies, Position(time_ms=time)).image.end_offset >= first
    with pytest.raises(StateNotThereError, match="is before the time of the first snapshot"):
        find_state(copies, Position("then", time_ms=time - 1))


def test_another_replica_has_what_the_first_one_lacks() -> None:
    """A log that starts above zero is completed by one that starts at zero."""
    copies, _ = found_copies(GOLDEN / "wire/data/n1", GOLDEN / "wire/data/n2")
    states = [find_state(copies, Position(offset=offset)) for offset in (50, copies[0].end)]
    assert {state.copy.path.rpartition("/")[2] for state in states} <= {"n1", "n2"}
    assert states[0].copy.path.endswith("n2")


def test_a_log_without_its_start_and_without_a_snapshot_has_no_state(tmp_path: Path) -> None:
    """What came before is not known, so nothing is shown."""
    copies, _ = found_copies(metadata_log(tmp_path, [VERSION], [TOPIC], start=7))
    with pytest.raises(StateNotThereError, match="log and snapshots have no state"):
        find_state(copies, Position())
    with pytest.raises(StateNotThereError, match="log and snapshots have no state"):
        earliest(copies[0])


def test_each_replica_says_what_it_lacks(tmp_path: Path) -> None:
    """In one message, the preferred replica first."""
    logs = metadata_log(tmp_path / "a", [VERSION], [TOPIC]), metadata_log(tmp_path / "b", [VERSION])
    copies, _ = found_copies(*logs)
    with pytest.raises(
        StateNotThereError, match=r"a: offset 3 .* from offset 0 to 2; .*b: offset 3 .* from offset 0 to 1"
    ):
        find_state(copies, parse_position("3"))


def test_a_damaged_batch_ends_the_states(tmp_path: Path) -> None:
    """The state before it is there, none after it; the default is the state before it."""
    path = metadata_log(tmp_path, [VERSION], [TOPIC], [PARTITION]) / "__cluster_metadata-0/00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    copies, _ = found_copies(tmp_path)
    assert ends(copies, "1") == (1, 1)
    assert find_state(copies, Position()).image.end_offset == 1
    with pytest.raises(StateNotThereError):
        find_state(copies, parse_position("3"))


def test_changes_lead_from_one_state_to_the_other(tmp_path: Path) -> None:
    """Each has its record; a change that a transaction holds back comes when that ends. Backwards is an error."""
    log = metadata_log(tmp_path, [VERSION], [BEGIN, TOPIC], [PARTITION], [END, SHRINK])
    copies, _ = found_copies(log)
    found: list[Change] = []

    def note(_: State, change: Change) -> None:
        found.append(change)

    before, after = find_changes(copies, parse_position("3"), Position(), note)
    assert (before.image.end_offset, after.image.end_offset) == (1, 6)
    assert [(each.offset, each.record_index, each.record, each.key[0], each.timestamp) for each in found] == [
        (2, 1, "TopicRecord", "topics", 1_003_000),
        (3, 0, "PartitionRecord", "partitions", 1_003_000),
        (5, 1, "PartitionChangeRecord", "partitions", 1_003_000),
    ]
    found.clear()
    find_changes(copies, parse_position("1"), parse_position("1"), note)
    assert found == []
    with pytest.raises(StateNotThereError, match="3 is before 4: 3 < 4"):
        find_changes(copies, parse_position("4"), parse_position("3"), note)
    with pytest.raises(StateNotThereError, match="offset 7 is after the end"):
        find_changes(copies, parse_position("4"), parse_position("7"), note)
