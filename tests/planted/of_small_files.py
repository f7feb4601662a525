# SPDX-License-Identifier: Apache-2.0
"""The small files beside a log, and those of a log directory, that say what is not so."""

import re
from pathlib import Path

import attrs

from raftlog.offsets import EpochEntry
from raftlog.records.files.checkpoint_files import (
    PartitionOffset,
    read_leader_epoch_checkpoint,
    read_offset_checkpoint,
    write_leader_epoch_checkpoint,
    write_offset_checkpoint,
)
from raftlog.records.files.quorum_state import QuorumStateData, read_quorum_state, write_quorum_state
from raftlog.storage.state.quorum_state_store import COPY_NAMES, QuorumStateCopy
from tests.planted.fault import Faults, Spot
from tests.planted.ground import DYNAMIC, METADATA, QUORUMS, TOPICS, Ground
from tests.planted.segments import Segment, in_the_middle, with_epoch

FAULTS = Faults("small files")

_ALL = (*QUORUMS, *TOPICS)
_NOBODY = "dCVhb5d_SfOEuy3K6wxI3g"
"""A directory id, and a topic's, that nothing has."""


def _quorum_state(ground: Ground, **changes: object) -> Spot:
    path = ground.file(f"*/{METADATA}/quorum-state")
    state = read_quorum_state(path.read_bytes())
    path.write_bytes(write_quorum_state(attrs.evolve(state, **changes)))  # type: ignore[arg-type]
    return Spot(path)


@FAULTS.kind("election-stale", on=QUORUMS)
def quorum_state_stale(ground: Ground) -> Spot:
    """quorum-state has a lower epoch than the log, as if an old copy was restored."""
    return _quorum_state(ground, leader_epoch=ground.between(1, 4), voted_id=-1, voted_directory_id=None)


@FAULTS.kind("election-missing", on=QUORUMS)
def quorum_state_missing(ground: Ground) -> Spot:
    """quorum-state is missing."""
    path = ground.file(f"*/{METADATA}/quorum-state")
    path.unlink()
    return Spot(path)


@FAULTS.kind("election-leader", on=QUORUMS)
def quorum_state_of_other_leader(ground: Ground) -> Spot:
    """quorum-state and the LeaderChange of the log's epoch name different leaders."""
    path = ground.file(f"*/{METADATA}/quorum-state")
    leader_id = read_quorum_state(path.read_bytes()).leader_id
    others = [other for other in (1, 2, 3) if other != leader_id]
    path.write_text(path.read_text().replace(f'"leaderId":{leader_id}', f'"leaderId":{ground.pick(others)}'))
    return Spot(path)


@FAULTS.kind("election-vote", on=QUORUMS)
def quorum_state_with_foreign_vote(ground: Ground) -> Spot:
    """quorum-state has a vote for a node that was never a voter."""
    return _quorum_state(ground, voted_id=9, voted_directory_id=None)


@FAULTS.kind("election-double-vote", on=QUORUMS)
def quorum_state_with_another_vote(ground: Ground) -> Spot:
    """quorum-state has a vote for one candidate, and the leader's LeaderChange for another."""
    elections = [each for log in ground.files(f"*/{METADATA}/*.log") for each in Segment(log).elections()]
    path, leader_id = ground.pick(
        (path, change.leader_id)
        for path in ground.files(f"*/{METADATA}/quorum-state")
        for epoch, change in elections
        if read_quorum_state(path.read_bytes()).leader_epoch == epoch
        if path.parent.parent.name in {f"n{voter.id}" for voter in change.granting_voters}
    )
    state = read_quorum_state(path.read_bytes())
    other = attrs.evolve(state, voted_id=ground.pick({1, 2, 3} - {leader_id}), voted_directory_id=None)
    path.write_bytes(write_quorum_state(other))
    return Spot(path)


@FAULTS.kind("election-stranger", on=QUORUMS)
def quorum_state_of_a_stranger(ground: Ground) -> Spot:
    """quorum-state has a higher epoch than the log, with a leader that was never a voter."""
    return _quorum_state(ground, leader_epoch=77, leader_id=77, voted_id=-1, voted_directory_id=None)


@FAULTS.kind("election-last-epoch", on=QUORUMS)
def quorum_state_of_the_last_epoch(ground: Ground) -> Spot:
    """quorum-state has epoch 2147483647, the greatest possible one."""
    return _quorum_state(ground, leader_epoch=2**31 - 1, leader_id=-1, voted_id=-1, voted_directory_id=None)


@FAULTS.kind("file-format", on=QUORUMS)
def quorum_state_cut(ground: Ground) -> Spot:
    """quorum-state ends too early."""
    path = ground.file(f"*/{METADATA}/quorum-state")
    path.write_bytes(path.read_bytes()[: ground.between(1, 80)])
    return Spot(path)


@FAULTS.kind("election-copies", on=QUORUMS)
def quorum_state_copy_differs(ground: Ground) -> Spot:
    """A copy that raftlog keeps of quorum-state has a higher epoch."""
    path = ground.file(f"*/{METADATA}/quorum-state")
    copy = path.with_name(ground.pick(COPY_NAMES))
    state = read_quorum_state(path.read_bytes())
    other = attrs.evolve(state, leader_epoch=state.leader_epoch + 1, leader_id=-1)
    copy.write_bytes(_copy(other))
    return Spot(copy)


@FAULTS.kind("file-crc", on=QUORUMS)
def quorum_state_copy_flipped(ground: Ground) -> Spot:
    """A digit is changed in a copy that raftlog keeps of quorum-state."""
    path = ground.file(f"*/{METADATA}/quorum-state")
    copy = path.with_name(ground.pick(COPY_NAMES))
    data = _copy(read_quorum_state(path.read_bytes()))
    copy.write_bytes(data.replace(b'"leaderEpoch":', b'"leaderEpoch":1', 1))
    return Spot(copy)


def _copy(state: QuorumStateData) -> bytes:
    return QuorumStateCopy(state, 1).encode()


def _epochs(ground: Ground, least: int = 1) -> tuple[Path, list[EpochEntry]]:
    """Return a leader-epoch-checkpoint with so many entries; a topic's log gets a second epoch if it needs one."""
    if least > 1 and ground.root.name in TOPICS:
        segment = Segment(ground.file("**/c-none-0/*.log"))
        index = in_the_middle(ground, segment)
        entry = EpochEntry(segment.view(index).partition_leader_epoch + 1, segment.view(index).base_offset)
        segment.batches[index:] = [with_epoch(batch, entry.epoch) for batch in segment.batches[index:]]
        segment.save()
        path = segment.path.with_name("leader-epoch-checkpoint")
        return path, [*read_leader_epoch_checkpoint(path.read_bytes()), entry]
    found = {
        path: list(read_leader_epoch_checkpoint(path.read_bytes()))
        for path in ground.files("**/leader-epoch-checkpoint")
    }
    path = ground.pick(path for path, entries in found.items() if len(entries) >= least)
    return path, found[path]


@FAULTS.kind("epochs-start", on=(*QUORUMS, "topics"))
def epochs_start_elsewhere(ground: Ground) -> Spot:
    """leader-epoch-checkpoint has a start offset for an epoch that is not the start of the epoch's first batch."""
    path, entries = _epochs(ground, 2)
    number = len(entries) - 1
    moved = entries[number].start_offset + ground.pick((-3, -1, 1, 4))
    entries[number] = attrs.evolve(entries[number], start_offset=moved)
    path.write_bytes(write_leader_epoch_checkpoint(entries))
    return Spot(path, offset=moved, epoch=entries[number].epoch)


@FAULTS.kind("epochs-missing", on=(*QUORUMS, "topics"))
def epochs_lack_one(ground: Ground) -> Spot:
    """leader-epoch-checkpoint lacks an epoch."""
    path, entries = _epochs(ground, 2)
    gone = entries.pop(ground.between(1, len(entries)))
    path.write_bytes(write_leader_epoch_checkpoint(entries))
    return Spot(path, offset=gone.start_offset, epoch=gone.epoch)


@FAULTS.kind("epochs-missing", on=_ALL)
def epochs_missing(ground: Ground) -> Spot:
    """leader-epoch-checkpoint is missing."""
    path, _ = _epochs(ground)
    path.unlink()
    return Spot(min(log for log in path.parent.glob("*.log") if log.stat().st_size))


@FAULTS.kind("epochs-order", on=(*QUORUMS, "topics"))
def epochs_out_of_order(ground: Ground) -> Spot:
    """Two entries of leader-epoch-checkpoint have changed places."""
    path, entries = _epochs(ground, 2)
    number = ground.below(len(entries) - 1)
    entries[number], entries[number + 1] = entries[number + 1], entries[number]
    path.write_bytes(b"".join([b"0\n", b"%d\n" % len(entries), *map(_line, entries)]))
    return Spot(path)


def _line(entry: EpochEntry) -> bytes:
    return f"{entry.epoch} {entry.start_offset}\n".encode()


@FAULTS.kind("file-format", on=_ALL)
def epochs_miscounted(ground: Ground) -> Spot:
    """leader-epoch-checkpoint has one entry fewer than its count."""
    path, entries = _epochs(ground)
    path.write_bytes(path.read_bytes().replace(b"0\n%d\n" % len(entries), b"0\n%d\n" % (len(entries) + 1), 1))
    return Spot(path)


@FAULTS.kind("file-format", on=_ALL)
def epochs_of_no_format(ground: Ground) -> Spot:
    """leader-epoch-checkpoint has an unknown version, or unrelated content."""
    path, _ = _epochs(ground)
    path.write_bytes(ground.pick((b"7" + path.read_bytes()[1:], b"\0" * 16, b"not a checkpoint\n")))
    return Spot(path)


@FAULTS.kind("topic-id", on=QUORUMS)
def topic_of_other_id(ground: Ground) -> Spot:
    """partition.metadata of a metadata log has another topic's id."""
    path = ground.file(f"*/{METADATA}/partition.metadata")
    path.write_text(re.sub("topic_id: .*", f"topic_id: {_NOBODY}", path.read_text()))
    return Spot(path)


@FAULTS.kind("topic-id", on=("topics",))
def topic_of_two_ids(ground: Ground) -> Spot:
    """One of a topic's two partitions has another topic id than the other."""
    first, second = ground.shuffled(ground.files("*/txn-?/partition.metadata"))
    first.write_text(re.sub("topic_id: .*", f"topic_id: {_NOBODY}", first.read_text()))
    return Spot(first, other_path=second)


@FAULTS.kind("topic-id", on=TOPICS)
def topic_id_of_another_topic(ground: Ground) -> Spot:
    """A topic has the topic id of another topic."""
    files = [path for path in ground.files("**/partition.metadata") if path.parent.name != METADATA]
    path, *others = ground.shuffled(each for each in files if not each.parent.name.startswith("txn-"))
    other = ground.pick(others)
    path.write_bytes(other.read_bytes())
    return Spot(path, other_path=other)


@FAULTS.kind("file-format", on=_ALL)
def topic_without_id(ground: Ground) -> Spot:
    """partition.metadata ends before the id."""
    path = ground.file("**/partition.metadata")
    path.write_bytes(path.read_bytes()[: ground.between(1, 20)])
    return Spot(path)


def _meta(ground: Ground, key: str, value: str) -> Spot:
    path = ground.file("*/meta.properties")
    path.write_text(re.sub(f"^{re.escape(key)}=.*", f"{key}={value}", path.read_text(), flags=re.MULTILINE))
    return Spot(path)


@FAULTS.kind("cluster-foreign", on=QUORUMS)
def directory_of_other_cluster(ground: Ground) -> Spot:
    """The meta.properties of a log directory names another cluster."""
    return _meta(ground, "cluster.id", _NOBODY)


@FAULTS.kind("node-twice", on=QUORUMS)
def node_twice(ground: Ground) -> Spot:
    """The meta.properties of two log directories have the same node id."""
    path = ground.file("*/meta.properties")
    mine = _value(path, "node.id")
    other = ground.pick(_value(each, "node.id") for each in ground.files("*/meta.properties") if each != path)
    path.write_text(path.read_text().replace(f"node.id={mine}\n", f"node.id={other}\n"))
    twin = next(each for each in ground.files("*/meta.properties") if each != path and _value(each, "node.id") == other)
    return Spot(path, other_path=twin)


@FAULTS.kind("directory-twice", on=QUORUMS)
def directory_id_twice(ground: Ground) -> Spot:
    """The meta.properties of two log directories have the same directory id: a disk was copied."""
    first, second, *_ = ground.shuffled(ground.files("*/meta.properties"))
    second.write_text(second.read_text().replace(_value(second, "directory.id"), _value(first, "directory.id")))
    return Spot(first, other_path=second)


@FAULTS.kind("directory-id", on=DYNAMIC)
def directory_of_other_id(ground: Ground) -> Spot:
    """The meta.properties of a voter has another directory id than the voter set: a disk was replaced."""
    path = ground.pick(each for each in ground.files("*/meta.properties") if _value(each, "node.id") in {"3", "4"})
    path.write_text(path.read_text().replace(_value(path, "directory.id"), _NOBODY))
    return Spot(path)


@FAULTS.kind("directory-unnamed", on=QUORUMS)
def directory_without_id(ground: Ground) -> Spot:
    """The meta.properties of a voter has no directory id."""
    path = _meta_of_voter(ground)
    path.write_text(re.sub("^directory.id=.*\n", "", path.read_text(), flags=re.MULTILINE))
    return Spot(path)


@FAULTS.kind("node-id", on=QUORUMS)
def directory_of_other_node(ground: Ground) -> Spot:
    """The meta.properties of a voter has the node id of none, and the voter's directory id."""
    path = _meta_of_voter(ground)
    path.write_text(
        path.read_text().replace(f"node.id={_value(path, 'node.id')}\n", f"node.id={ground.between(7, 99)}\n")
    )
    return Spot(path)


@FAULTS.kind("file-format", on=_ALL)
def node_of_negative_id(ground: Ground) -> Spot:
    """A meta.properties has a negative node id."""
    path = ground.file("**/meta.properties")
    path.write_text(re.sub("^node.id=.*$", f"node.id={-ground.between(1, 9)}", path.read_text(), flags=re.MULTILINE))
    return Spot(path)


def _meta_of_voter(ground: Ground) -> Path:
    voters = {"2", "3"} if ground.root.name == "static" else {"3", "4"}
    return ground.pick(path for path in ground.files("*/meta.properties") if _value(path, "node.id") in voters)


@FAULTS.kind("election-cluster", on=("static",))
def quorum_state_of_another_cluster(ground: Ground) -> Spot:
    """A quorum-state of version 0 names another cluster."""
    path = ground.file(f"n[123]/{METADATA}/quorum-state")
    path.write_text(path.read_text().replace('"clusterId":""', f'"clusterId":"{_NOBODY}"'))
    return Spot(path)


@FAULTS.kind("election-two-leaders", on=QUORUMS)
def quorum_states_of_two_leaders(ground: Ground) -> Spot:
    """The quorum-states of two nodes name two leaders of one epoch, which is later than that of every log."""
    paths = ground.shuffled(ground.files(f"n[123]/{METADATA}/quorum-state"))[:2]
    epoch = max(read_quorum_state(path.read_bytes()).leader_epoch for path in paths) + ground.between(1, 9)
    for leader_id, path in zip(ground.shuffled((2, 3)), paths, strict=True):
        state = read_quorum_state(path.read_bytes())
        led = attrs.evolve(state, leader_epoch=epoch, leader_id=leader_id, voted_id=-1, voted_directory_id=None)
        path.write_bytes(write_quorum_state(led))
    return Spot(paths[0], epoch=epoch, other_path=paths[1])


def _value(path: Path, key: str) -> str:
    found = re.search(f"^{re.escape(key)}=(.*)$", path.read_text(), flags=re.MULTILINE)
    assert found is not None
    return found[1]


@FAULTS.kind("meta-missing", on=QUORUMS)
def unclaimed_directory(ground: Ground) -> Spot:
    """The meta.properties of a log directory is missing."""
    path = ground.file("*/meta.properties")
    path.unlink()
    return Spot(path)


@FAULTS.kind("file-format", on=_ALL)
def directory_without_node(ground: Ground) -> Spot:
    """A meta.properties has no node id."""
    path = ground.file("**/meta.properties")
    path.write_text(re.sub("^node.id=.*\n", "", path.read_text(), flags=re.MULTILINE))
    return Spot(path)


@FAULTS.kind("offset-checkpoint", on=TOPICS)
def offset_checkpoint_ahead(ground: Ground) -> Spot:
    """The recovery point or the high watermark of a partition is beyond the end of its log."""
    path = ground.file(ground.pick(("**/recovery-point-offset-checkpoint", "**/replication-offset-checkpoint")))
    entries = list(read_offset_checkpoint(path.read_bytes()))
    there = [number for number, each in enumerate(entries) if (path.parent / f"{each.topic}-{each.partition}").exists()]
    number = ground.pick(there)
    ahead = PartitionOffset(entries[number].topic, entries[number].partition, entries[number].offset + 10_000)
    entries[number] = ahead
    path.write_bytes(write_offset_checkpoint(entries))
    return Spot(path, offset=ahead.offset)


@FAULTS.kind("file-format", on=TOPICS)
def offset_checkpoint_with_one_twice(ground: Ground) -> Spot:
    """An offset checkpoint names a partition twice, the second time with another offset."""
    path = ground.file("**/replication-offset-checkpoint")
    entries = list(read_offset_checkpoint(path.read_bytes()))
    first = entries[ground.pick(number for number, each in enumerate(entries) if each.offset > 0)]
    path.write_bytes(write_offset_checkpoint([*entries, attrs.evolve(first, offset=first.offset - 1)]))
    return Spot(path, path.read_bytes().rindex(f"{first.topic} {first.partition} ".encode()))


def _trimmed(ground: Ground) -> Path:
    """Delete the first batch of a log, as if retention had deleted its segment; return the segment that is first."""
    name = "orders-0" if ground.root.name == "mirror" else ground.pick(("c-none-0", "c-gzip-0", "c-lz4-0"))
    segment = Segment(ground.file(f"**/{name}/*.log"))
    del segment.batches[: ground.between(1, len(segment.batches))]
    path = segment.path.with_name(f"{segment.view(0).base_offset:020}.log")
    for each in segment.path.parent.glob(f"{segment.path.stem}.*"):
        each.rename(path.with_suffix(each.suffix))
    segment.path = path
    segment.save()
    epoch = EpochEntry(segment.view(0).partition_leader_epoch, segment.view(0).base_offset)
    path.with_name("leader-epoch-checkpoint").write_bytes(write_leader_epoch_checkpoint([epoch]))
    return path


def _log_start(segment: Path, offset: int) -> Spot:
    """Write the log start of a segment's log to the checkpoint of its log directory."""
    topic, _, partition = segment.parent.name.rpartition("-")
    path = segment.parent.with_name("log-start-offset-checkpoint")
    entries = read_offset_checkpoint(path.read_bytes())
    path.write_bytes(write_offset_checkpoint([*entries, PartitionOffset(topic, int(partition), offset)]))
    return Spot(path, offset=offset)


@FAULTS.kind("log-start-above", on=TOPICS)
def log_start_above_the_high_watermark(ground: Ground) -> Spot:
    """The log start of a partition is above its high watermark, but not above the end of its log."""
    log = _trimmed(ground)
    path = log.parent.with_name("replication-offset-checkpoint")
    entries = read_offset_checkpoint(path.read_bytes())
    of_log = next(each for each in entries if f"{each.topic}-{each.partition}" == log.parent.name)
    lower = attrs.evolve(of_log, offset=of_log.offset - ground.between(2, 20))
    path.write_bytes(write_offset_checkpoint([lower if each == of_log else each for each in entries]))
    return _log_start(log, ground.between(lower.offset + 1, of_log.offset + 1))


@FAULTS.kind("log-start-below", on=TOPICS)
def log_start_before_the_log(ground: Ground) -> Spot:
    """The log start of a partition is before its first segment, although its broker was shut down cleanly."""
    log = _trimmed(ground)
    log.parent.with_name(".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')
    return _log_start(log, ground.below(int(log.stem)))


@FAULTS.kind("log-start-stale", on=TOPICS)
def log_start_of_a_killed_broker(ground: Ground) -> Spot:
    """The log start of a partition is before its first segment, and its broker was killed."""
    log = _trimmed(ground)
    return _log_start(log, ground.below(int(log.stem)))


@FAULTS.kind("log-start-stale", on=TOPICS)
def log_start_in_tiered_storage(ground: Ground) -> Spot:
    """The log start of a partition is before its first segment, and its leader epochs begin there."""
    log = _trimmed(ground)
    start = ground.below(int(log.stem))
    log.parent.with_name(".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')
    log.with_name("leader-epoch-checkpoint").write_bytes(write_leader_epoch_checkpoint([EpochEntry(0, start)]))
    return _log_start(log, start)


@FAULTS.kind("file-format", on=TOPICS)
def offset_checkpoint_torn(ground: Ground) -> Spot:
    """An offset checkpoint is cut off in the middle of a line."""
    path = ground.file("**/replication-offset-checkpoint")
    path.write_bytes(path.read_bytes()[: -ground.between(3, 100)])
    return Spot(path)


@FAULTS.kind("epochs-beyond", on=("topics",))
def topic_epoch_beyond_the_end(ground: Ground) -> Spot:
    """leader-epoch-checkpoint of a topic's log has an epoch that starts after the log's end."""
    path = ground.file("**/c-none-0/leader-epoch-checkpoint")
    entries = read_leader_epoch_checkpoint(path.read_bytes())
    log = Segment(max(path.parent.glob("*.log")))
    beyond = EpochEntry(entries[-1].epoch + 1, log.view(-1).next_offset + ground.between(1, 100))
    path.write_bytes(write_leader_epoch_checkpoint([*entries, beyond]))
    return Spot(path, offset=beyond.start_offset, epoch=beyond.epoch)


@FAULTS.kind("epochs-beyond", on=QUORUMS)
def epoch_begun_at_the_end(ground: Ground) -> Spot:
    """leader-epoch-checkpoint has an epoch in which its leader wrote nothing."""
    path = ground.file(f"n[23]/{METADATA}/leader-epoch-checkpoint")
    entries = read_leader_epoch_checkpoint(path.read_bytes())
    log = Segment(max(path.parent.glob("*.log")))
    begun = EpochEntry(entries[-1].epoch + 1, log.view(-1).next_offset)
    path.write_bytes(write_leader_epoch_checkpoint([*entries, begun]))
    state = read_quorum_state(path.with_name("quorum-state").read_bytes())
    unvoted = attrs.evolve(state, leader_epoch=begun.epoch, leader_id=-1, voted_id=-1, voted_directory_id=None)
    path.with_name("quorum-state").write_bytes(write_quorum_state(unvoted))
    return Spot(path, offset=begun.start_offset, epoch=begun.epoch)
