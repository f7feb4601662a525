# SPDX-License-Identifier: Apache-2.0
"""The longest log that replicas can vouch for, of small quorums whose whole past is known."""

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.offsets import EpochEntry, OffsetAndEpoch
from raftlog.records.checksum import crc32c
from raftlog.tools.salvage.choosing import FoundSnapshot
from raftlog.tools.salvage.longest_log import LongestLog, find_longest_log
from raftlog.tools.salvage.losses import Witness, dropped_words
from raftlog.tools.salvage.merging import IsMajority, Piece
from raftlog.tools.salvage.winning import Known
from tests.tools.salvage.made_quorums import (
    DAMAGE,
    LOG,
    Batch,
    Disk,
    Past,
    data_batch,
    end_of,
    leader_change,
    pasts,
)
from tests.tools.salvage.naive_salvage import least_end

NOTHING = Known({})


def bytes_of(disks: Sequence[Disk], pieces: Sequence[Piece]) -> bytes:
    """The bytes of some pieces."""
    found = b""
    for piece in pieces:
        data = (disks[piece.source].path / LOG / piece.file).read_bytes()
        found += data[piece.position : piece.end_position]
    return found


def salvage(
    disks: Sequence[Disk],
    snapshots: Sequence[FoundSnapshot] = (),
    proven: Known = NOTHING,
    is_majority: IsMajority = lambda *_: False,
) -> LongestLog | None:
    """Write disks, and find the longest log."""
    files = [disk.written(number) for number, disk in enumerate(disks)]
    return find_longest_log(files, snapshots, proven, is_majority)


def check(disks: Sequence[Disk], found: LongestLog | None, truths: Sequence[Sequence[Batch]], least: int) -> None:
    """Check that a log is a part of a true one without a gap, and not too short."""
    chosen = None if found is None else found.chosen
    if chosen is None:
        assert least == 0
        return
    data = bytes_of(disks, chosen.pieces)
    slices = [
        [batch for batch in truth if chosen.start_offset <= batch.start and batch.end <= chosen.end.offset]
        for truth in truths
        if end_of(truth) >= (chosen.end.epoch, chosen.end.offset) or not chosen.pieces
    ]
    assert data in [b"".join(batch.data for batch in each) for each in slices]
    assert chosen.start_offset == 0 or any(each.offset >= chosen.start_offset for each in chosen.snapshots)
    assert chosen.end.offset >= least


@settings(deadline=None, max_examples=150)
@given(pasts(), st.data())
def test_it_is_of_the_true_lineage_and_as_long_as_can_be(past: Past, data: st.DataObject) -> None:
    """Whatever was done, damaged and lost: not a byte that is not of the true log, and all that can be vouched for."""
    check_salvage(past, data, has_checkpoints=True)


@settings(deadline=None, max_examples=150)
@given(pasts(), st.data())
def test_without_checkpoints_it_is_of_a_log_that_was(past: Past, data: st.DataObject) -> None:
    """If the end of the true log is gone without a trace, another log may win; never a mixture of logs."""
    check_salvage(past, data, has_checkpoints=False)


@pytest.mark.slow
@settings(deadline=None, max_examples=1000)
@given(pasts(), st.data(), st.booleans())
def test_it_is_as_long_as_can_be_in_many_pasts(past: Past, data: st.DataObject, has_checkpoints: bool) -> None:
    """The same, many times."""
    check_salvage(past, data, has_checkpoints=has_checkpoints)


def check_salvage(past: Past, data: st.DataObject, *, has_checkpoints: bool) -> None:
    """Draw disks with damage, and snapshots; check what is salvaged from them."""
    truth = past.true_log
    with tempfile.TemporaryDirectory() as directory:
        disks = []
        for number, log in enumerate(past.logs):
            rolls = data.draw(st.sets(st.integers(1, 12)), f"segments of {number}")
            disks.append(Disk(Path(directory, f"n{number}"), log, sorted(rolls)))
            disks[-1].has_checkpoint = has_checkpoints
        plant(disks, data.draw(st.lists(DAMAGE, max_size=4), "damage"))
        snapshots = draw_snapshots(past, data)
        is_proven = data.draw(st.booleans(), "is proven")
        proven = NOTHING
        if is_proven and past.committed:
            proven = Known.of_point(OffsetAndEpoch(past.committed[-1].end, past.committed[-1].epoch))
        found = salvage(disks, snapshots, proven)
        truths = [truth] if has_checkpoints else past.logs
        least = least_end(disks, [each.offset for each in snapshots]) if has_checkpoints else 0
        check(disks, found, truths, least)


def plant(disks: Sequence[Disk], damage: Sequence[tuple[int, str, int, int]]) -> None:
    """Damage disks. No two wrong headers tell the same story: one a replica, and another bit on each."""
    turned: set[int] = set()
    for replica, kind, batch, amount in damage:
        number = replica % len(disks)
        is_header = kind in {"offset", "epoch"}
        if disks[number].log and not (is_header and number in turned):
            disks[number].damage(kind, batch, amount // 5 * 5 + number if is_header else amount)
            turned |= {number} if is_header else set()


def draw_snapshots(past: Past, data: st.DataObject) -> list[FoundSnapshot]:
    """Some snapshots of committed records, each of a replica that has had them."""
    found = []
    for number in data.draw(st.sets(st.integers(0, 12), max_size=2), "snapshots"):
        if number < len(past.committed):
            batch = past.committed[number]
            source = data.draw(st.sampled_from([each for each, log in enumerate(past.logs) if batch in log]))
            found.append(FoundSnapshot(source, f"{batch.end}", batch.end, batch.epoch))
    return found


# Examples


def made(*epochs: tuple[int, int], text: bytes = b"r") -> list[Batch]:
    """A log: for each epoch a LeaderChange and some data batches of two records."""
    log: list[Batch] = []
    for epoch, count in epochs:
        log.append(leader_change(end_of(log)[1], epoch, 1))
        for _ in range(count):
            log.append(data_batch(end_of(log)[1], epoch, 2, text + b"%d " % len(log)))
    return log


def test_a_bad_batch_is_taken_from_another_replica(tmp_path: Path) -> None:
    """Each of two replicas is damaged in another place: together they have everything."""
    log = made((1, 5))
    disks = [Disk(tmp_path / "a", log), Disk(tmp_path / "b", log)]
    disks[0].damage("byte", 2, 5)
    disks[1].damage("byte", 4, 5)
    found = salvage(disks)
    assert found is not None
    assert found.chosen is not None
    assert bytes_of(disks, found.chosen.pieces) == b"".join(batch.data for batch in log)
    assert [piece.source for piece in found.chosen.pieces] == [0, 1, 0]


def test_a_hole_is_not_stepped_over(tmp_path: Path) -> None:
    """The same batch is bad everywhere: the log ends before it, however much there is after it."""
    log = made((1, 9))
    disks = [Disk(tmp_path / "a", log), Disk(tmp_path / "b", log)]
    for disk in disks:
        disk.damage("zeros", 2, 0)
    found = salvage(disks)
    assert found is not None
    assert found.chosen is not None
    assert (found.chosen.start_offset, found.chosen.end) == (0, OffsetAndEpoch(3, 1))
    assert [(each.start_offset, each.end_offset) for each in found.chosen.unused] == [(5, 19)]


@pytest.mark.parametrize(
    ("offset", "start", "end"), [(4, 0, 3), (5, 5, 19), (6, 0, 3), (7, 5, 19), (19, 5, 19), (20, 0, 3)]
)
def test_a_snapshot_above_a_hole_beats_cutting(offset: int, start: int, end: int, tmp_path: Path) -> None:
    """From the end of the hole to the end of the log after it; not in the hole, in a batch, or after the log."""
    log = made((1, 9))
    disk = Disk(tmp_path / "a", log)
    disk.damage("zeros", 2, 0)  # Offsets 3 and 4.
    found = salvage([disk], [FoundSnapshot(0, "s", offset, 1)])
    assert found is not None
    assert found.chosen is not None
    if offset == 4:  # In the hole, and above the end of the log before it: nothing is left but the snapshot.
        start = end = 4
    assert (found.chosen.start_offset, found.chosen.end.offset) == (start, end)


@pytest.mark.parametrize("number", [0, 1, 5])
def test_a_wrong_base_offset_or_epoch_is_not_believed(number: int, tmp_path: Path) -> None:
    """No CRC covers them: a batch whose neighbours contradict it is not taken, and another replica has it."""
    log = made((1, 5))
    for kind in ("offset", "epoch"):
        disks = [Disk(tmp_path / f"{kind}-a", log), Disk(tmp_path / f"{kind}-b", log)]
        disks[0].damage(kind, number, 2)
        for used in (disks[:1], disks):
            found = salvage(used)
            assert found is not None
            expected = log[:number] if len(used) == 1 else log
            data = b"" if found.chosen is None else bytes_of(disks, found.chosen.pieces)
            assert data == b"".join(batch.data for batch in expected)


def test_two_batches_of_one_epoch_and_offset_are_never_merged(tmp_path: Path) -> None:
    """Two leaders of one epoch: the log ends where they part, and goes on after a snapshot with one of them alone."""
    one, other = made((1, 6)), made((1, 3))
    other += [data_batch(7, 1, 2, b"other"), data_batch(9, 1, 2, b"other"), data_batch(11, 1, 4, b"other")]
    disks = [Disk(tmp_path / "a", one), Disk(tmp_path / "b", other)]
    found = salvage(disks)
    assert found is not None
    assert found.chosen is not None
    assert found.chosen.end.offset == 7
    (conflict,) = found.merged.conflicts
    assert (conflict.offset, conflict.epoch, conflict.kept, conflict.left_out) == (7, 1, (1,), (0,))
    found = salvage(disks, [FoundSnapshot(1, "s", 11, 1)])
    assert found is not None
    assert found.chosen is not None
    assert bytes_of(disks, found.chosen.pieces) == other[-2].data + other[-1].data
    found = salvage(disks, [FoundSnapshot(0, "s", 11, 1)])  # What it covers is committed: that side is kept.
    assert found is not None
    assert found.chosen is not None
    assert bytes_of(disks, found.chosen.pieces) == one[-2].data + one[-1].data


@pytest.mark.parametrize(
    ("nodes", "kept"), [((1, 2, 2), {0}), ((1, 2, 3), {1, 2}), ((1, 2, None), {0}), ((None, 2, 2), {1, 2})]
)
def test_copies_of_a_disk_do_not_outvote_a_node(nodes: tuple[int | None, ...], kept: set[int], tmp_path: Path) -> None:
    """Nodes count, not directories; of as many, the log that reaches further goes on, in whatever order they are."""
    one, other = made((1, 6)), [*made((1, 3)), data_batch(7, 1, 2, b"other"), data_batch(9, 1, 2, b"other")]
    disks = [Disk(tmp_path / "a", one), Disk(tmp_path / "b", other), Disk(tmp_path / "c", other)]
    files = [disk.written(node) for disk, node in zip(disks, nodes, strict=True)]
    for order in itertools.permutations(range(3)):
        found = find_longest_log([files[number] for number in order], (), NOTHING, lambda *_: False)
        assert found is not None
        (conflict,) = found.merged.conflicts
        assert {order[number] for number in conflict.kept} == kept


def test_equal_sides_are_told_apart_by_their_nodes(tmp_path: Path) -> None:
    """Two logs of one length: the order of the directories does not decide."""
    one, other = made((1, 3)), [*made((1, 2)), data_batch(5, 1, 2, b"other")]
    files = [Disk(tmp_path / "b", one).written(1), Disk(tmp_path / "a", other).written(2)]
    for order in ([0, 1], [1, 0]):
        found = find_longest_log([files[number] for number in order], (), NOTHING, lambda *_: False)
        assert found is not None
        assert [order[number] for number in found.merged.conflicts[0].kept] == [0]


def test_a_majority_settles_such_a_conflict(tmp_path: Path) -> None:
    """What two of three voters have goes on, though the third one reaches further."""
    one, other = made((1, 6)), made((1, 3))
    other += [data_batch(7, 1, 2, b"other"), data_batch(9, 1, 9, b"other")]
    disks = [Disk(tmp_path / "a", other), Disk(tmp_path / "b", one), Disk(tmp_path / "c", one)]
    found = salvage(disks, is_majority=lambda side, _: len(side) >= 2)
    assert found is not None
    assert found.chosen is not None
    assert bytes_of(disks, found.chosen.pieces) == b"".join(batch.data for batch in one)
    assert [conflict.is_settled for conflict in found.merged.conflicts] == [True]


def test_epochs_decide_and_what_is_proven_decides_before_them(tmp_path: Path) -> None:
    """A short log of a later epoch beats a long one; unless that drops what is proven to be committed."""
    long, late = made((1, 2), (2, 9)), [*made((1, 2)), *made((1, 2), (3, 1))[3:]]
    disks = [Disk(tmp_path / "a", long), Disk(tmp_path / "b", late)]
    found = salvage(disks)
    assert found is not None
    assert found.chosen is not None
    assert bytes_of(disks, found.chosen.pieces) == b"".join(batch.data for batch in late)
    found = salvage(disks, proven=Known.of_point(OffsetAndEpoch(8, 2)))
    assert found is not None
    assert found.chosen is not None
    assert bytes_of(disks, found.chosen.pieces) == b"".join(batch.data for batch in long)
    assert salvage(disks[1:], proven=Known.of_point(OffsetAndEpoch(8, 2))) is None


@pytest.mark.parametrize(("state_epoch", "end"), [(1, 13), (5, 13), (6, 5), (None, 5)])
def test_an_entry_of_an_epoch_that_its_node_has_not_seen_is_ignored(
    state_epoch: int | None, end: int, tmp_path: Path
) -> None:
    """A digit of leader-epoch-checkpoint is wrong: no epoch 6 has replaced what others have from offset 5 on."""
    log = made((1, 2), (2, 1), (4, 2))
    disks = [Disk(tmp_path / "a", log), Disk(tmp_path / "b", log)]
    disks[0].damage("tail", 3, 0)
    entries = (EpochEntry(1, 0), EpochEntry(6, 5))
    files = [attrs.evolve(disks[0].written(1), checkpoint=entries, state_epoch=state_epoch), disks[1].written(2)]
    found = find_longest_log(files, (), NOTHING, lambda *_: False)
    assert found is not None
    assert found.chosen is not None
    assert found.chosen.end.offset == end


def test_other_records_below_the_start_of_the_result_are_not_named(tmp_path: Path) -> None:
    """Another lineage has offsets 0 to 2: nobody is told to care for them if the log begins after them."""
    disks = [Disk(tmp_path / "a", made((1, 9))), Disk(tmp_path / "b", made((0, 1)))]
    disks[0].damage("zeros", 2, 0)
    for snapshots, count in (((), 1), ((FoundSnapshot(0, "s", 5, 1),), 0)):
        found = salvage(disks, snapshots)
        assert found is not None
        assert found.chosen is not None
        lines = list(dropped_words(found, found.chosen, {0: "a", 1: "b"}, [Witness(None, None)] * 2))
        assert [line[:6] for line in lines] == ["b has "] * count


def test_an_epoch_of_which_only_the_start_is_known_ends_the_log(tmp_path: Path) -> None:
    """The last epoch's records are gone, but its checkpoint says where it began: others' records there were dropped."""
    long, late = made((1, 2), (2, 9)), [*made((1, 2)), *made((1, 2), (3, 1))[3:]]
    disks = [Disk(tmp_path / "a", long), Disk(tmp_path / "b", late)]
    disks[1].damage("tail", 3, 0)
    found = salvage(disks)
    assert found is not None
    assert found.chosen is not None
    assert found.chosen.end == OffsetAndEpoch(5, 1)


@pytest.mark.parametrize(
    ("nodes", "end"), [((1, 2), 7), ((1, 1), 5), ((1, None), 5), ((None, 1), 5), ((None, None), 5)]
)
def test_a_batch_that_is_alone_needs_a_second_copy(
    nodes: tuple[int | None, int | None], end: int, tmp_path: Path
) -> None:
    """Damage is before it, and nothing after it: another node's same bytes count; those of a copy do not."""
    log = made((1, 3))
    disks = [Disk(tmp_path / "a", log), Disk(tmp_path / "b", log)]
    for disk in disks:
        disk.damage("byte", 2, 5)
    files = [disk.written(node) for disk, node in zip(disks, nodes, strict=True)]
    found = find_longest_log(files, [FoundSnapshot(0, "s", 5, 1)], NOTHING, lambda *_: False)
    assert found is not None
    assert found.chosen is not None
    assert found.chosen.end.offset == end
    alone = find_longest_log(files[:1], [FoundSnapshot(0, "s", 5, 1)], NOTHING, lambda *_: False)
    assert alone is not None
    assert alone.chosen is not None
    assert (alone.chosen.pieces, alone.chosen.end.offset) == ((), 5)


@pytest.mark.parametrize(("seen", "end"), [((1, 1), 5), ((2, 2), 7), ((1, None), 5), ((2, None), 7), ((1, 2), 5)])
def test_no_copy_vouches_for_an_epoch_that_its_node_has_not_seen(
    seen: tuple[int | None, int | None], end: int, tmp_path: Path
) -> None:
    """Two nodes have the same bytes, alone among damage, of epoch 2, and quorum-state says how far each of them was."""
    log = [*made((1, 2)), data_batch(5, 2, 2, b"r")]
    disks = [Disk(tmp_path / "a", log), Disk(tmp_path / "b", log)]
    for disk in disks:
        disk.damage("byte", 2, 5)
    files = [
        attrs.evolve(disk.written(number), state_epoch=epoch)
        for number, (disk, epoch) in enumerate(zip(disks, seen, strict=True))
    ]
    found = find_longest_log(files, [FoundSnapshot(0, "s", 5, 1)], NOTHING, lambda *_: False)
    assert found is not None
    assert found.chosen is not None
    assert found.chosen.end.offset == end


def test_a_snapshot_of_an_unknown_node_is_no_second_one(tmp_path: Path) -> None:
    """No log reaches its end: the copy of a directory whose meta.properties is gone says no more than the first one."""
    disks = [Disk(tmp_path / name, made((1, 4))) for name in ("a", "b")]
    snapshots = [FoundSnapshot(number, "s", 99, 1) for number in (0, 1)]
    for nodes, end in (((1, 2), 99), ((1, 1), 9), ((1, None), 9), ((None, 1), 9), ((None, None), 9)):
        files = [disk.written(node) for disk, node in zip(disks, nodes, strict=True)]
        found = find_longest_log(files, snapshots, NOTHING, lambda *_: False)
        assert found is not None
        assert found.chosen is not None
        assert found.chosen.end.offset == end, nodes


def test_the_name_of_the_next_file_vouches_for_a_place(tmp_path: Path) -> None:
    """A batch alone between damage and the end of its file, where the next file goes on in the same epoch."""
    log = made((1, 4))
    disk = Disk(tmp_path / "a", log, [4])
    disk.damage("byte", 2, 5)
    found = salvage([disk], [FoundSnapshot(0, "s", 5, 1)])
    assert found is not None
    assert found.chosen is not None
    assert bytes_of([disk], found.chosen.pieces) == log[3].data + log[4].data


def test_the_name_of_a_snapshot_is_not_enough(tmp_path: Path) -> None:
    """No log reaches its end: it counts if another node has it too, or if the end of its own log is lost."""
    log = made((1, 4))
    disks = [Disk(tmp_path / "a", log), Disk(tmp_path / "b", log)]
    renamed = [FoundSnapshot(number, "s", 99, 1) for number in (0, 1)]

    def end_with(snapshots: Sequence[FoundSnapshot]) -> int:
        found = salvage(disks, snapshots)
        assert found is not None
        assert found.chosen is not None
        return found.chosen.end.offset

    assert end_with(renamed[:1]) == 9
    assert end_with(renamed) == 99
    disks[0].damage("byte", 2, 5)  # Damage elsewhere does not hide where the log has ended.
    assert end_with(renamed[:1]) == 9
    disks[0].damage("byte", 4, 5)
    assert end_with(renamed[:1]) == 99
    assert end_with(renamed[1:]) == 9


@pytest.mark.parametrize(
    ("kind", "number", "amount", "has_checkpoint", "end"),
    [
        ("byte", 2, 5, True, 3),
        ("byte", 5, 5, True, 99),
        ("zeros", 5, 0, False, 99),
        ("tail", 5, 5, True, 99),
        ("tail", 5, 0, True, 8),  # Cut between two batches: nothing shows that there was more.
        ("file", 4, 0, True, 99),  # The checkpoint says that an epoch began after the end.
        ("file", 4, 0, False, 7),
    ],
)
def test_which_loss_may_hide_where_a_log_has_ended(
    kind: str, number: int, amount: int, has_checkpoint: bool, end: int, tmp_path: Path
) -> None:
    """Damaged bytes after the last sound record, or a later epoch; not what is before a sound end."""
    disk = Disk(tmp_path / "a", made((1, 3), (2, 1)), [4])
    disk.has_checkpoint = has_checkpoint
    disk.damage(kind, number, amount)
    found = salvage([disk], [FoundSnapshot(0, "s", 99, 2)])
    assert found is not None
    assert found.chosen is not None
    assert found.chosen.end.offset == end


def test_a_batch_of_impossible_form_is_damage(tmp_path: Path) -> None:
    """A writer was faulty: the CRC holds, and the header says more records than there are. It has no side."""
    log = made((1, 4))
    malformed = bytearray(log[2].data)
    malformed[57:61] = (3).to_bytes(4, "big")
    malformed[17:21] = crc32c(malformed[21:]).to_bytes(4, "big")
    wrong = [*log[:2], Batch(3, 5, 1, False, bytes(malformed)), *log[3:]]
    disks = [Disk(tmp_path / "a", wrong), Disk(tmp_path / "b", log)]
    for used, end in ((disks[:1], 3), (disks, 9), (disks[::-1], 9)):
        found = salvage(used)
        assert found is not None
        assert found.chosen is not None
        assert (found.chosen.end.offset, found.merged.conflicts) == (end, ())
