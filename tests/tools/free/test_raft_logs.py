# SPDX-License-Identifier: Apache-2.0
"""What a snapshot covers is offered only if the snapshot is sound, and the log that is left opens as before."""

import itertools
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.log.snapshots import begin_snapshot
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.segments.log_config import LogConfig
from raftlog.tools.free.offers import counted
from raftlog.voters.voter_set import VoterSet
from tests.golden_files import GOLDEN
from tests.tools.free.made_directories import (
    LOG,
    copied_node,
    grave_findings,
    kept,
    log_of,
    never_offered,
    offered,
    offered_by,
    offers_for,
    remove,
)
from tests.tools.made_logs import flip
from tests.tools.salvage.made_quorums import TIMESTAMP, leader_change

NEWEST = "00000000000000000230-0000000004.checkpoint"
MIDDLE = "00000000000000000151-0000000004.checkpoint"
OLDEST = "00000000000000000081-0000000003.checkpoint"
FIRST = [f"00000000000000000000{kind}" for kind in (".log", ".index", ".timeindex")]
CONFIG = LogConfig(segment_size_bytes=200, retention_bytes=None, retention_ms=None)


def opened(path: Path, start: int) -> tuple[int, list[bytes]]:
    """The end of a log, and its batches that end after an offset, as raftlog opens it."""
    with FileLog.open(LocalFileSystem(), str(path), CONFIG) as log:
        assert log.quarantine is None
        assert log.start_offset <= start
        return log.end_offset.offset, [bytes(batch.buffer) for batch in log.batches(start)]


STEPS = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=14)
"""Batches: how many records each has, 0 for the first of a new epoch, and whether a snapshot is taken after it."""


def records(offset: int, epoch: int, count: int) -> bytes:
    """A batch as raft writes it: all records have one time."""
    builder = RecordBatchBuilder(offset, partition_leader_epoch=epoch)
    for _ in range(count):
        builder.append(TIMESTAMP + offset, None, b"record")
    return builder.build()


def made_log(path: Path, steps: list[tuple[int, bool]]) -> None:
    """Make a metadata log of a few batches per segment, with snapshots, and without cleaning it."""
    epoch, offset = 1, 0
    with FileLog.open(LocalFileSystem(), str(path), CONFIG) as log:
        machine = KRaftControlRecordStateMachine(VoterSet())
        for count, is_snapshot in [(0, False), *steps]:
            epoch += count == 0
            data = leader_change(offset, epoch, 1).data if count == 0 else records(offset, epoch, count)
            log.append_as_follower(data, epoch)
            offset = RecordBatch(data).next_offset
            log.flush()
            log.update_high_watermark(offset)
            update_state(machine, log)
            last_timestamp = RecordBatch(data).max_timestamp
            if is_snapshot and (writer := begin_snapshot(log, machine, offset, now_ms=last_timestamp)) is not None:
                with writer:
                    writer.append([b"state"], last_timestamp)
                    writer.freeze(last_timestamp)


def newest_end(path: Path) -> int:
    """The end of the newest snapshot by its name; 0 if there is none."""
    return max((int(each.name[:20]) for each in path.glob("*.checkpoint")), default=0)


@settings(max_examples=15)
@given(STEPS, st.data())
def test_the_log_that_is_left_is_the_same_from_its_snapshot_on(
    steps: list[tuple[int, bool]], data: st.DataObject
) -> None:
    """After any first part of the offers is removed, the log has the same end and records, and no new finding.

    Records are compared from the end of the newest snapshot on.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / LOG
        made_log(path, steps)
        start = newest_end(path)
        offers = [each.offer for each in counted(offers_for(Path(folder)).found)]
        assert not any(never_offered(Path(name).name) for each in offers for name in (each.path, *each.others))
        before = grave_findings(path)
        expected = opened(Path(shutil.copytree(path, Path(folder) / "copy" / LOG)), start)
        for offer in offers[: data.draw(st.integers(0, len(offers)))]:
            for removed in (offer.path, *offer.others):
                remove(Path(removed))
        assert grave_findings(path) <= before
        assert opened(path, start) == expected


@settings(max_examples=15)
@given(STEPS)
def test_covered_segments_are_those_of_a_plain_loop(steps: list[tuple[int, bool]]) -> None:
    """Segments are offered exactly if a segment follows that starts at the end of the newest snapshot or before it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / LOG
        made_log(path, steps)
        bases = sorted(int(each.stem) for each in path.glob("*.log"))
        model = [f"{base:020}.log" for base, following in itertools.pairwise(bases) if following <= newest_end(path)]
        found = [name for name in offered_by("covered-segment", Path(folder)) if name.endswith(".log")]
        assert found == model
        assert offered_by("old-snapshot", Path(folder)) == sorted(each.name for each in path.glob("*.checkpoint"))[:-1]


@settings(max_examples=15)
@given(STEPS, st.data())
def test_no_segment_is_offered_after_one_that_must_stay(steps: list[tuple[int, bool]], data: st.DataObject) -> None:
    """If a segment is a symbolic link, or has no byte: those offered are the first ones, without a gap."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / LOG
        made_log(path, steps)
        names = sorted(each.name for each in path.glob("*.log"))
        number, is_link = data.draw(st.integers(0, len(names) - 1)), data.draw(st.booleans())
        offered_before = [name for name in offered_by("covered-segment", Path(folder)) if name.endswith(".log")]
        spoilt = path / names[number]
        if is_link:
            spoilt.rename(Path(folder) / "elsewhere")
            spoilt.symlink_to(Path(folder) / "elsewhere")
        else:
            spoilt.write_bytes(b"")
        found = [name for name in offered_by("covered-segment", Path(folder)) if name.endswith(".log")]
        assert found == names[: len(found)]
        assert spoilt.name not in found
        if is_link:
            assert found == offered_before[:number]
            assert (spoilt.name in kept(Path(folder))) == (number < len(offered_before))


@pytest.mark.parametrize(("base", "expected"), [(0, []), (102, [0]), (203, [0, 102])])
def test_a_linked_segment_ends_what_is_offered(base: int, expected: list[int], tmp_path: Path) -> None:
    """Of a real node with three segments, two of which are covered: those before the symbolic link."""
    log = Path(shutil.copytree(GOLDEN / "wire/data/n2" / LOG, tmp_path / LOG))
    linked = log / f"{base:020}.log"
    linked.rename(tmp_path / "elsewhere")
    linked.symlink_to(tmp_path / "elsewhere")
    found = [name for name in offered_by("covered-segment", log) if name.endswith(".log")]
    assert found == [f"{each:020}.log" for each in expected]
    assert ("regular file" in kept(log).get(linked.name, "")) == (base < 203)


@pytest.mark.parametrize("target", ["missing", NEWEST], ids=["nowhere", "loop"])
def test_a_log_with_a_file_that_cannot_be_read_is_not_touched(target: str, tmp_path: Path) -> None:
    """A symbolic link to nowhere or to itself, in place of the newest snapshot."""
    node = copied_node(tmp_path)
    newest = log_of(node) / NEWEST
    newest.unlink()
    newest.symlink_to(target)
    assert offered(node) == []
    assert "file-unreadable" in kept(node)[LOG]


def test_after_a_fault_of_raftlog_itself_nothing_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that fails might have found damage."""

    def failing(_: object) -> None:
        raise ZeroDivisionError

    node = copied_node(tmp_path)
    monkeypatch.setattr("raftlog.tools.auditing.judgement.partition_rules.judge_partition", failing)
    assert offered(node) == []
    assert "audit-failed" in kept(node)[LOG]


def test_a_snapshot_that_ends_later_is_not_replaced_by_one_of_a_later_epoch(tmp_path: Path) -> None:
    """The order of ids has the epoch first; neither the one that ends later, nor a deleted one like it, is offered."""
    node = copied_node(tmp_path)
    later = f"{240:020}-{3:010}.checkpoint"
    shutil.copyfile(log_of(node) / NEWEST, log_of(node) / later)
    names = [f"{end:020}-0000000003.checkpoint.deleted" for end in (230, 231)]
    for name in names:
        (log_of(node) / name).write_bytes(b"x")
    assert offered_by("old-snapshot", node) == [OLDEST, MIDDLE]
    assert later in kept(node)
    assert offered_by("deleted-snapshot", node) == names[:1]


def test_with_a_swap_file_nothing_of_the_log_is_offered(tmp_path: Path) -> None:
    """Snapshots, segments, producer snapshots, indexes and copies that raftlog did not finish stay, too."""
    node = copied_node(tmp_path)
    (log_of(node) / f"{FIRST[0]}.damaged-7-0.tmp").write_bytes(b"x")
    assert ("half-copied", f"{FIRST[0]}.damaged-7-0.tmp") in offered(node)
    (log_of(node) / "00000000000000000193.index.swap").write_bytes(b"x")
    assert offered(node) == []
    assert "00000000000000000193.index.swap" in kept(node)


def test_what_the_newest_snapshot_covers_is_offered_in_order(tmp_path: Path) -> None:
    """Of a real node: older snapshots, then the first segment with its indexes; never the last one, nor the newest."""
    found = offered(copied_node(tmp_path))
    covered = [name for rule, name in found if rule in {"old-snapshot", "covered-segment"}]
    assert covered == [OLDEST, MIDDLE, *FIRST]
    names = [name for _, name in found]
    assert not {NEWEST, "00000000000000000193.log"} & set(names)
    assert not any(map(never_offered, names))


@pytest.mark.parametrize("position", [70, -70])
def test_a_damaged_snapshot_covers_nothing(position: int, tmp_path: Path) -> None:
    """A flipped bit in its first or its last batch: then the one before it counts, which covers no whole segment."""
    node = copied_node(tmp_path)
    newest = log_of(node) / NEWEST
    newest.chmod(0o600)
    flip(newest, position if position > 0 else newest.stat().st_size + position)
    assert offered_by("old-snapshot", node) == [OLDEST]
    assert offered_by("covered-segment", node) == []
    assert "not sound" in kept(node)[NEWEST]


def test_a_snapshot_without_its_footer_covers_nothing(tmp_path: Path) -> None:
    """Kafka reads one that was cut off at a batch's end; here it is not whole."""
    node = copied_node(tmp_path)
    newest = log_of(node) / NEWEST
    newest.chmod(0o600)
    newest.write_bytes(newest.read_bytes()[:-75])
    assert offered_by("covered-segment", node) == []
    assert NEWEST in kept(node)


@pytest.mark.parametrize(
    ("end", "has_data", "is_covered"), [(2, True, False), (3, True, True), (4, True, True), (4, False, False)]
)
def test_the_snapshot_must_reach_the_next_segment(end: int, has_data: bool, is_covered: bool, tmp_path: Path) -> None:
    """A segment of offsets 0 to 2 is covered by a snapshot that ends at 3 or later, and has data as the log does."""
    batches = [leader_change(0, 1, 1).data, *(records(offset, 1, 1) for offset in range(1, 6))]
    config = LogConfig(segment_size_bytes=len(b"".join(batches[:3])))
    with FileLog.open(LocalFileSystem(), str(tmp_path / LOG), config) as log:
        for data in batches:
            log.append_as_follower(data, 1)
        log.flush()
        log.update_high_watermark(6)
        machine = KRaftControlRecordStateMachine(VoterSet())
        update_state(machine, log)
        writer = begin_snapshot(log, machine, end, now_ms=TIMESTAMP + end - 1)
        assert writer is not None
        with writer:
            if has_data:
                writer.append([b"state"], TIMESTAMP + end - 1)
            writer.freeze(TIMESTAMP + end - 1)
    assert sorted(path.name for path in (tmp_path / LOG).glob("*.log")) == [FIRST[0], "00000000000000000003.log"]
    assert (FIRST[0] in offered_by("covered-segment", tmp_path)) == is_covered
    assert ("no data record" in "".join(kept(tmp_path).values())) == (not has_data)


def test_a_renamed_snapshot_covers_nothing(tmp_path: Path) -> None:
    """No byte of a snapshot says where it ends; but the time in its header is that of another record."""
    node = copied_node(tmp_path)
    (log_of(node) / NEWEST).rename(log_of(node) / "old")
    shutil.copyfile(log_of(node) / MIDDLE, log_of(node) / NEWEST)
    assert offered_by("covered-segment", node) == []
    assert "not sound" in kept(node)[NEWEST]


def test_a_damaged_log_is_not_touched(tmp_path: Path) -> None:
    """If a segment is damaged, each file of the log may be needed, left-overs too."""
    node = copied_node(tmp_path)
    (log_of(node) / f"{NEWEST}.part").write_bytes(b"x")
    assert offered_by("partial-snapshot", node) == [f"{NEWEST}.part"]
    flip(log_of(node) / "00000000000000000193.log", 70)
    assert offered(node) == []
    assert "damaged" in kept(node)[LOG]
    assert "copy the directory elsewhere first" in kept(node)[LOG]
    (log_of(node) / f"{NEWEST}.part").unlink()
    assert "copy" not in kept(node)[LOG]


def test_a_torn_tail_does_not_stop_it(tmp_path: Path) -> None:
    """A full disk tears the last write; the segment itself stays, and its indexes."""
    node = copied_node(tmp_path)
    last = log_of(node) / "00000000000000000193.log"
    last.write_bytes(last.read_bytes()[:-20])
    assert offered_by("covered-segment", node) == FIRST
    assert not any("193" in name for name in offered_by("index", node))


def test_snapshots_on_their_way_out_need_a_newer_sound_one(tmp_path: Path) -> None:
    """As new as the newest sound one is enough; newer is not. An unfinished one goes, too."""
    node = copied_node(tmp_path)
    names = [f"{end:020}-0000000004.checkpoint.deleted" for end in (229, 230, 231)]
    part = "00000000000000000240-0000000004-77.checkpoint.part"
    for name in (*names, part):
        (log_of(node) / name).write_bytes(b"x")
    assert offered_by("deleted-snapshot", node) == names[:2]
    assert names[2] in kept(node)
    assert offered_by("partial-snapshot", node) == [part]


def test_without_a_sound_snapshot_an_unfinished_one_stays(tmp_path: Path) -> None:
    """If the log begins after all sound snapshots, what was fetched of another one may be needed."""
    node = copied_node(tmp_path, "n4")
    part, deleted = f"{NEWEST}.part", f"{NEWEST}.deleted"
    for name in (part, deleted):
        (log_of(node) / name).write_bytes(b"x")
    assert offered_by("partial-snapshot", node) == [part]
    for path in log_of(node).glob("*.checkpoint"):
        path.chmod(0o600)
        flip(path, 70)
    assert offered_by("partial-snapshot", node) == offered_by("deleted-snapshot", node) == []
    assert {part, deleted} <= set(kept(node))
    assert all("copy it elsewhere first" in kept(node)[name] for name in (part, deleted))


def test_the_snapshot_of_formatting_stays(tmp_path: Path) -> None:
    """The one with end 0 has the features of a new cluster, and is no older snapshot."""
    node = copied_node(tmp_path)
    shutil.copyfile(log_of(copied_node(tmp_path, "n1")) / f"{0:020}-{0:010}.checkpoint", log_of(node) / "x")
    (log_of(node) / "x").rename(log_of(node) / f"{0:020}-{0:010}.checkpoint")
    assert f"{0:020}-{0:010}.checkpoint" not in offered_by("old-snapshot", node)


def test_zeros_at_the_end_are_named(tmp_path: Path) -> None:
    """Preallocated room of a segment comes free by itself."""
    node = copied_node(tmp_path)
    with (log_of(node) / "00000000000000000193.log").open("ab") as file:
        file.write(bytes(1000))
    assert "1000 bytes are zeros" in kept(node)["00000000000000000193.log"]
