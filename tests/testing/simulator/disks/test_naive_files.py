# SPDX-License-Identifier: Apache-2.0
"""What files say without the log agrees with what the log says of them; each file that an open forgets is found."""

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raftlog.log.epochs import LeaderEpochs
from raftlog.offsets import EpochEntry
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.files.file_names import FileKind
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery.recovery_point import (
    FLUSH_MARK_NAME,
    RECOVERY_POINT_NAME,
    RecoveryPoint,
    load_durable_point,
)
from raftlog.storage.segments.log_config import LogConfig
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.testing.simulator.checks.ledger import Ledger, StoredBatch
from raftlog.testing.simulator.disks.naive_files import (
    check_settled,
    check_witnessed,
    durable_end_in,
    is_whole_up_to,
    kind_of,
    whole_in,
    written_end,
)
from raftlog.testing.simulator.violation import ViolationError
from tests.quorum.single_replica import replica_key

CONFIG = LogConfig(segment_size_bytes=600, index_interval_bytes=64)


def written(count: int = 12, *, is_closed: bool = False) -> tuple[MemoryFileSystem, Ledger]:
    """Return a log of several segments and two epochs, opened and then crashed or closed, and its ledger."""
    files, ledger = MemoryFileSystem(), Ledger(replica_key(1))
    log = FileLog.open(files, "log", CONFIG)
    for offset in range(count):
        batch = raft_batch(offset, 1 + offset // 5)
        log.append_as_follower(batch, 9)
        ledger.batches.append(StoredBatch.of(RecordBatch(batch)))
    log.flush()
    ledger.synced_to(count)
    if is_closed:
        log.close()
    else:
        FileLog.open(files := MemoryFileSystem(files.state()), "log", CONFIG)
    return files, ledger


def changed(files: MemoryFileSystem, path: str, data: bytes | None) -> MemoryFileSystem:
    """Return files of which one has other bytes; without it if there are none."""
    state = [each for each in files.state() if each[0] != path]
    return MemoryFileSystem(tuple(state if data is None else sorted([*state, (path, data, False)])))


def segments(files: MemoryFileSystem) -> list[str]:
    """Return the paths of the segments."""
    return [path for path in files.contents() if kind_of(path) is FileKind.LOG]


def test_all_batches_are_whole() -> None:
    """Of all segments, but none that was never written."""
    files, ledger = written()
    other = ledger.batches[3]._replace(epoch=7)
    assert len(segments(files)) > 1
    assert whole_in(files.state(), [*ledger.batches, other]) == ledger.batches


@given(st.integers(min_value=0), st.integers(0, 7))
@example(5 * 73 + 8, 0)  # The last batch is then longer than the file.
def test_a_flipped_bit_makes_one_batch_not_whole(position: int, bit: int) -> None:
    """That one, and no other; a bit of the length or the magic may hide it, or change nothing that a CRC covers."""
    files, ledger = written(6)
    path = segments(files)[0]
    data = bytearray(files.contents()[path])
    position %= len(data)
    data[position] ^= 1 << bit
    whole = whole_in(changed(files, path, bytes(data)).state(), ledger.batches)
    lost = [each for each in ledger.batches if each not in whole]
    at = next(each for each in _places(files.contents()[path]) if position in each)
    assert len(lost) <= 1
    assert lost or position - at.start == 16  # The magic, which neither the name of a batch nor its CRC has.


@given(st.integers(min_value=0), st.integers(0, 7), st.integers(0, 5))
@example(5 * 73 + 8, 0, 5)
def test_whole_batches_lead_to_a_batch(position: int, bit: int, index: int) -> None:
    """Those of its segment, up to it: a flipped bit in one of them is found, and in no later one."""
    files, ledger = written(6)
    assert is_whole_up_to(files.state(), ledger.batches[index])
    assert not is_whole_up_to(files.state(), ledger.batches[index]._replace(base_offset=9))
    path = segments(files)[0]
    data = bytearray(files.contents()[path])
    position %= len(data)
    data[position] ^= 1 << bit
    at = [position in each for each in _places(files.contents()[path])].index(True)
    is_led_to = is_whole_up_to(changed(files, path, bytes(data)).state(), ledger.batches[index])
    is_later = at > index or index >= len(_places(files.contents()[path]))
    field = position - _places(files.contents()[path])[at].start
    assert is_led_to == is_later or field < 8 or 12 <= field < 17  # Names, epochs and the magic: no CRC has them.
    assert is_led_to or not is_later


@pytest.mark.parametrize("suffix", ["", ".damaged-0"])
@pytest.mark.parametrize("start", range(13))
def test_written_batches_follow_on_an_offset(start: int, suffix: str) -> None:
    """To the end of the last segment, wherever they begin, although segments have other names; none follows the end."""
    files, _ = written()
    named = segments(files)
    state = tuple((path + suffix if path in named else path, data, is_only) for path, data, is_only in files.state())
    assert written_end(state, start) == 12
    assert written_end((), start) == start


@given(st.integers(0, 11), st.integers(0, 7), st.integers(17, 72))
def test_written_batches_end_before_a_damaged_one(index: int, bit: int, field: int) -> None:
    """A flipped bit in the CRC of a batch, or in what it covers, ends them there."""
    files, _ = written()
    for path in segments(files):
        data = bytearray(files.contents()[path])
        base_offset = int.from_bytes(data[:8])
        places = _places(bytes(data))
        if base_offset <= index < base_offset + len(places):
            at = places[index - base_offset]
            data[at.start + min(field, len(at) - 1)] ^= 1 << bit
            state = changed(files, path, bytes(data)).state()
            assert [written_end(state, start) for start in range(13)] == [*[index] * (index + 1), *[12] * (12 - index)]


def _places(data: bytes) -> list[range]:
    found, start = [], 0
    while start < len(data):
        size = 12 + int.from_bytes(data[start + 8 : start + 12])
        found.append(range(start, start + size))
        start += size
    return found


@pytest.mark.parametrize("is_closed", [False, True])
def test_the_durable_end_is_what_the_log_reads(is_closed: bool) -> None:
    """Of the recovery point and the marks; a mark of another generation, or with a flipped bit, does not count."""
    files, _ = written(is_closed=is_closed)
    assert durable_end_in(files.state(), "log") == load_durable_point(files, "log").durable_end_offset == 12
    marks = files.contents()[f"log/{FLUSH_MARK_NAME}"]
    point = RecoveryPoint(durable_end_offset=3, generation=7).encode()
    older = changed(files, f"log/{RECOVERY_POINT_NAME}", point)
    assert durable_end_in(older.state(), "log") == load_durable_point(older, "log").durable_end_offset == 3
    for position in range(0, len(marks), 5):
        flipped = marks[:position] + bytes([marks[position] ^ 1]) + marks[position + 1 :]
        rotten = changed(files, f"log/{FLUSH_MARK_NAME}", flipped)
        assert durable_end_in(rotten.state(), "log") == load_durable_point(rotten, "log").durable_end_offset
    assert durable_end_in(changed(files, f"log/{RECOVERY_POINT_NAME}", None).state(), "log") is None
    assert durable_end_in(changed(files, f"log/{RECOVERY_POINT_NAME}", b"rotten").state(), "log") is None


def test_an_open_leaves_nothing() -> None:
    """A second one finds nothing to do, and makes the same indexes."""
    files, ledger = written()
    check_settled(files.state(), "log", CONFIG, ledger)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("00000000000000000000.index", b"\0\0\0\x01\0\0\0\x01"),
        ("00000000000000000000.timeindex", None),
        ("00000000000000000004-0000000001-1.checkpoint.part", b""),
        ("raftlog-recovery-point.tmp", b""),
        ("00000000000000000000.log.deleted", b""),
        ("00000000000000000099.snapshot", b""),
    ],
)
def test_what_an_open_has_left_is_found(name: str, data: bytes | None) -> None:
    """An index that is not what the segment says, a file that was never finished, or one that belongs to nothing."""
    files, ledger = written()
    with pytest.raises(ViolationError, match="opens-finish"):
        check_settled(changed(files, f"log/{name}", data).state(), "log", CONFIG, ledger)


def test_epochs_have_a_second_witness() -> None:
    """The recovery point has those of all durable batches, from where it starts; an unreadable one says nothing."""
    files, ledger = written()
    check_witnessed(files.state(), "log", ledger, None)
    path, known = f"log/{RECOVERY_POINT_NAME}", load_durable_point(files, "log").recovery_point
    assert known is not None
    assert len(LeaderEpochs(known.epochs).entries) > 1
    later = attrs.evolve(known, epochs=known.epochs[1:])
    for right in (later.encode(), b"rotten", None):
        check_witnessed(changed(files, path, right).state(), "log", ledger, None)
    inside = EpochEntry(9, known.epochs[-1].start_offset + 1)
    for epochs in (
        known.epochs[:-1],
        (*known.epochs, inside),
        (*known.epochs[:-1], EpochEntry(9, known.epochs[-1].start_offset)),
    ):
        wrong = changed(files, path, attrs.evolve(known, epochs=epochs).encode())
        with pytest.raises(ViolationError, match="epochs-are-witnessed"):
            check_witnessed(wrong.state(), "log", ledger, None)
    start = known.epochs[-1].start_offset
    cut = changed(files, path, attrs.evolve(known, epochs=known.epochs[:-1]).encode())
    check_witnessed(cut.state(), "log", ledger, start)  # A truncation stores the epochs that it leaves, and then cuts.
    with pytest.raises(ViolationError, match="epochs-are-witnessed"):
        check_witnessed(cut.state(), "log", ledger, start + 1)
    ledger.durable_end = start  # What is not durable may be lost, with its epoch.
    wrong = changed(files, path, attrs.evolve(known, epochs=known.epochs[:-1]).encode())
    check_witnessed(wrong.state(), "log", ledger, None)
