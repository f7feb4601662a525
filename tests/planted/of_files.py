# SPDX-License-Identifier: Apache-2.0
"""Files and directories that are missing, doubled, foreign, or cannot be read."""

import shutil
from pathlib import Path

from raftlog.records.files.checkpoint_files import read_leader_epoch_checkpoint
from raftlog.storage.recovery.recovery_point import RECOVERY_POINT_NAME, RecoveryPoint
from tests.golden_files import GOLDEN
from tests.planted.fault import Faults, Spot
from tests.planted.ground import METADATA, QUORUMS, SOURCES, TOPICS, Ground
from tests.planted.of_bytes import last_log
from tests.planted.segments import Segment

FAULTS = Faults("files")

_ALL = (*QUORUMS, *TOPICS)
_PARTS = (".log", ".index", ".timeindex", ".txnindex")


def _parts(log: Path) -> list[Path]:
    return [log.with_suffix(suffix) for suffix in _PARTS if log.with_suffix(suffix).exists()]


def _middle_log(ground: Ground, *, is_last: bool) -> Path:
    """Return a segment in the middle of its log, or at its end, where there are so many."""
    found = []
    for directory in sorted({path.parent for path in ground.files("**/*.log")}):
        logs = sorted(directory.glob("*.log"))
        if is_last and len(logs) > 1:
            found.append(logs[-1])
        elif not is_last:
            found += logs[1:-1]
    return ground.pick(found)


@FAULTS.kind("segment-gap", on=("wire",))
def segment_missing(ground: Ground) -> Spot:
    """A segment in the middle of a metadata log is missing, with its indexes."""
    log = _middle_log(ground, is_last=False)
    start = int(log.stem)
    for path in _parts(log):
        path.unlink()
    return Spot(min(path for path in log.parent.glob("*.log") if int(path.stem) > start), offset=start)


@FAULTS.kind("log-end", "snapshot-ahead", on=("dynamic", "wire"))
def last_segment_missing(ground: Ground) -> Spot:
    """The last segment of a metadata log is missing, with its indexes."""
    log = _middle_log(ground, is_last=True)
    for path in _parts(log):
        path.unlink()
    newest = max(log.parent.glob("*.checkpoint"), default=None)
    last = max(log.parent.glob("*.log"))
    return Spot(newest if newest is not None and int(newest.name[:20]) > int(log.stem) else last)


@FAULTS.kind("segment-overlap", on=("dynamic", "wire"))
def segments_overlap(ground: Ground) -> Spot:
    """A segment ends with a copy of the first batches of the next one."""
    log = _middle_log(ground, is_last=True)
    before = Segment(max(path for path in log.parent.glob("*.log") if path < log))
    before.batches += Segment(log).batches[: ground.between(1, 4)]
    before.save()
    return Spot(log, offset=int(log.stem))


@FAULTS.kind("segment-twice", on=_ALL)
def segment_twice(ground: Ground) -> Spot:
    """A segment exists twice, with two spellings of its base offset."""
    log = ground.log(1)
    twin = log.with_name(f"{int(log.stem)}.log")
    shutil.copyfile(log, twin)
    return Spot(twin)


@FAULTS.kind("segment-start", on=("static",))
def segment_renamed(ground: Ground) -> Spot:
    """The only segment of a log is named after an offset in its middle."""
    kept = ground.alone()
    log = kept / METADATA / "00000000000000000000.log"
    offset = ground.between(10, 30)
    for path in _parts(log):
        path.rename(path.with_stem(f"{offset:020}"))
    log = log.with_stem(f"{offset:020}")
    Segment(log).save()
    return Spot(log, 0)


@FAULTS.kind("segment-start", on=("dynamic", "wire", "topics"))
def segment_renamed_to_a_lower_offset(ground: Ground) -> Spot:
    """A segment, or its .log alone, is named after an offset of the segment before it."""
    log = _middle_log(ground, is_last=True)
    start = int(log.stem)
    renamed = log.with_stem(f"{start - ground.between(1, 20):020}")
    for path in _parts(log) if ground.below(2) else [log]:
        path.rename(path.with_stem(renamed.stem))
    return Spot(renamed, 0, start)


def _emptied(ground: Ground) -> Path:
    """Take the segments and snapshots of a partition away, and return its directory."""
    directory = ground.pick({path.parent for path in ground.files("**/*.log") if path.stat().st_size})
    for path in [*directory.glob("0*")]:
        path.unlink()
    return directory


@FAULTS.kind("segments-gone", on=QUORUMS)
def segments_gone(ground: Ground) -> Spot:
    """All segments and snapshots of a metadata log are missing."""
    return Spot(_emptied(ground))


@FAULTS.kind("directory-empty", on=TOPICS)
def directory_emptied(ground: Ground) -> Spot:
    """A partition's directory has its partition.metadata, and nothing else."""
    directory = _emptied(ground)
    for path in directory.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    return Spot(directory)


@FAULTS.kind("partition-missing", on=("topics",))
def partition_missing(ground: Ground) -> Spot:
    """A partition is missing that the checkpoints of its log directory still name."""
    directory = ground.pick(path.parent for path in ground.files("*/c-*-0/*.log"))
    shutil.rmtree(directory)
    return Spot(directory)


@FAULTS.kind("file-left-over", on=TOPICS)
def partition_set_aside(ground: Ground) -> Spot:
    """A partition was deleted, or found stray, since the checkpoints of its log directory were written."""
    directory = ground.pick(path.parent for path in ground.files("**/*.log") if path.parent.name != METADATA)
    aside = directory.with_name(f"{directory.name}.{'0123456789abcdef' * 2}-{ground.pick(('delete', 'stray'))}")
    return Spot(directory.rename(aside))


@FAULTS.kind("partition-missing", on=TOPICS)
def partition_without_a_file(ground: Ground) -> Spot:
    """A partition's directory is empty, but the checkpoints of its log directory show that it had records."""
    directories = {path.parent for path in ground.files("**/*.log") if path.stat().st_size}
    directory = ground.pick(each for each in directories if each.name != METADATA)
    for path in directory.iterdir():
        path.unlink()
    return Spot(directory)


@FAULTS.kind("partition-missing", on=("topics",))
def checkpoint_of_another_broker(ground: Ground) -> Spot:
    """An offset checkpoint is that of another broker."""
    path = ground.file("*/recovery-point-offset-checkpoint")
    shutil.copyfile(GOLDEN / SOURCES["mirror"] / path.name, path)
    return Spot(path)


@FAULTS.kind("segment-start", on=TOPICS)
def segment_of_another_topic(ground: Ground) -> Spot:
    """A segment of another partition lies after the end of a log, with a base offset in its name that fits there."""
    logs = [path for path in ground.files(f"**/{0:020}.log") if path.stat().st_size and path.parent.name != METADATA]
    other, *_, log = ground.shuffled(logs)
    segment = Segment(max(log.parent.glob("*.log")))
    base_offset = (segment.view(-1).next_offset if segment.batches else int(segment.path.stem)) + 1000
    moved = log.with_name(f"{base_offset:020}.log")
    shutil.copyfile(other, moved)
    return Spot(moved, 0)


@FAULTS.kind("file-unreadable", on=_ALL)
def file_unreadable(ground: Ground) -> Spot:
    """A segment, snapshot or small file cannot be opened: it is a dangling symbolic link."""
    path = ground.file(ground.pick(("**/*.log", "**/quorum-state", "**/meta.properties", "**/partition.metadata")))
    path.unlink()
    path.symlink_to("nowhere")
    return Spot(path)


@FAULTS.kind("file-unknown", on=_ALL)
def file_unknown(ground: Ground) -> Spot:
    """A file that Kafka does not know lies beside a segment."""
    path = ground.log(1).with_name(ground.pick(("notes.txt", "00000000000000000000.log.bak", "core.4711")))
    path.write_bytes(b"mine")
    return Spot(path)


@FAULTS.kind("file-left-over", on=_ALL)
def file_left_over(ground: Ground) -> Spot:
    """A .deleted, .cleaned or .swap file lies beside a segment."""
    log = ground.log(1)
    suffix = ground.pick((".deleted", ".cleaned", ".swap"))
    path = log.with_name(f"{3:020}.log{suffix}")
    path.write_bytes(log.read_bytes())
    return Spot(path)


@FAULTS.kind("log-end-durable", on=QUORUMS)
def durable_records_missing(ground: Ground) -> Spot:
    """raftlog's recovery point is beyond the end of the log."""
    segment = last_log(ground)
    end_offset = segment.view(-1).next_offset
    epochs = read_leader_epoch_checkpoint(segment.path.with_name("leader-epoch-checkpoint").read_bytes())
    point = RecoveryPoint(durable_end_offset=end_offset + ground.between(1, 50), generation=1, epochs=epochs)
    segment.path.with_name(RECOVERY_POINT_NAME).write_bytes(point.encode())
    return Spot(segment.path, offset=end_offset)
