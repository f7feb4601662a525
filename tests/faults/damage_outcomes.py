# SPDX-License-Identifier: Apache-2.0
"""The allowed outcomes for a log directory in which one byte has changed.

All served records are those that were written, all missing records are reported, and all errors are typed. Startup does
a bounded number of disk operations.
"""

import collections
import enum
import uuid
from collections.abc import Callable
from typing import Final

import attrs

from raftlog.errors import QuarantinedLogError, RaftLogError
from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.log.replicated_log import Isolation, Quarantine
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.recovery.recovery_report import ActionKind
from raftlog.storage.state.log_directory import LogDirectory
from raftlog.storage.state.quorum_state_store import QuorumStateStore
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.voters.voter_set import VoterSet
from tests.faults.damaged_directories import CLUSTER_ID, CONFIG, NODE_ID, PATH, VOTE, Damage, Scene
from tests.log.control_batches import State

MOST_STEPS: Final = 1000
"""Disk operations of one start, and of reading everything after it."""


class Outcome(enum.Enum):
    """What became of it."""

    IDENTICAL = "identical"
    """All is as it was, and nothing had to be done: the byte is in nothing that counts."""
    REPAIRED = "repaired"
    """All is as it was, and the file was made anew from others."""
    SET_ASIDE = "set aside"
    """A damaged snapshot is not listed; the log has all of its records."""
    CUT = "cut"
    """The last batch is gone: it was above the durable point, nothing sound was behind it, and the report says so.
    It is kept under another name."""
    LOST = "lost"
    """The log starts anew at a snapshot of all that it had. The report says what is damaged, and all of it is kept."""
    QUARANTINED = "quarantined"
    """The log serves what is below the damage, refuses to lead, and keeps the bytes."""
    NO_VOTE = "no vote"
    """What was voted is not known any more, and the replica does not vote."""
    REFUSED = "refused"
    """The directory does not open; nothing in it was changed."""
    UNDETECTABLE = "undetectable"
    """Something else is trusted, and no reader of this format could know: ``BLIND_SPOTS`` has the reason."""


@attrs.frozen
class Blind:
    """Bytes whose damage cannot be found.

    Attributes:
        name: of the spot.
        reason: why the damage cannot be found, and its effect.
        covers: whether a damage in a scene is in this spot.
    """

    name: str
    reason: str
    covers: Callable[[Scene, Damage], bool]


@attrs.frozen
class Found:
    """The state of a directory after startup."""

    start_offset: int
    end_offset: int
    batches: dict[int, bytes]
    states: dict[int, State]
    snapshots: dict[OffsetAndEpoch, bytes]
    vote: QuorumStateData | None
    may_vote: bool
    directory_id: uuid.UUID | None
    quarantine: Quarantine | None
    actions: frozenset[ActionKind]
    """What was done, and reported."""
    first_bad_is_refused: bool = True


def start(file_system: MemoryFileSystem) -> Found:
    """Open everything in a directory, read all of it, and close it.

    Raises:
        RaftLogError: a part of it cannot be opened or read.
    """
    with LogDirectory.open(file_system, PATH, cluster_id=CLUSTER_ID, node_id=NODE_ID) as directory:
        log = FileLog.open(file_system, directory.log_path, CONFIG)
        try:
            has_log = bool(log.end_offset.offset or log.snapshot_ids)
            store = QuorumStateStore.open(file_system, directory.log_path, has_log=has_log)
            machine = KRaftControlRecordStateMachine(VoterSet())
            update_state(machine, log)
            return Found(
                log.start_offset,
                log.end_offset.offset,
                _batches(log),
                _states(machine),
                {snapshot_id: _snapshot(log, snapshot_id) for snapshot_id in log.snapshot_ids},
                store.state,
                store.recovered.may_vote,
                directory.meta.directory_id,
                log.quarantine,
                _actions(log, store),
                _refuses_what_is_bad(log),
            )
        finally:
            log.close()


def _batches(log: FileLog) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    offset = log.start_offset
    while offset < log.end_offset.offset:
        data = bytes(log.read(offset, Isolation.UNCOMMITTED).records)
        for piece in split(BufferSource(data)):
            assert isinstance(piece, RecordBatch), "something is served that is no batch"
            found[piece.base_offset] = data[piece.position : piece.position + piece.size_bytes]
            offset = piece.next_offset
    return found


def _states(machine: KRaftControlRecordStateMachine) -> dict[int, State]:
    offsets = range(machine.start_offset, machine.next_offset)
    return {each: (machine.voter_set_at_offset(each), machine.kraft_version_at_offset(each)) for each in offsets}


def _snapshot(log: FileLog, snapshot_id: OffsetAndEpoch) -> bytes:
    raw = log.read_snapshot(snapshot_id)
    assert raw is not None, "a snapshot is listed and not there"
    with raw:
        return bytes(raw.read_at(0, raw.size()))


def _actions(log: FileLog, store: QuorumStateStore) -> frozenset[ActionKind]:
    kinds = {action.kind for action in log.recovery.actions}
    if store.recovered.problems or not store.recovered.is_settled:
        kinds.add(ActionKind.REBUILT)
    return frozenset(kinds)


def _refuses_what_is_bad(log: FileLog) -> bool:
    """Whether a quarantined log neither serves its first bad offset nor leads."""
    if log.quarantine is None:
        return True
    for act in (
        lambda: log.read(log.end_offset.offset, Isolation.UNCOMMITTED),
        lambda: log.append_as_leader(b"", 9),
        lambda: log.initialize_leader_epoch(9),
    ):
        try:
            act()
        except QuarantinedLogError:
            continue
        return False
    return True


def _without_report(found: Found) -> Found:
    """What was found, without what one start says of it: of the damage, a restart at a snapshot leaves the offsets."""
    quarantine = found.quarantine
    if quarantine is not None:
        quarantine = attrs.evolve(quarantine, reason="", path="", position=0)
    return attrs.evolve(found, actions=frozenset(), quarantine=quarantine)


class WrongBeliefError(AssertionError):
    """Bytes that were not written are accepted as written; in a blind spot, that is unavoidable."""


def _believe(is_true: bool, message: str) -> None:
    if not is_true:
        raise WrongBeliefError(message)


class Judge:
    """Judges what becomes of the damages of one scene.

    Attributes:
        sound: what the directory says without damage.
        blind_spots: how often something else was trusted, by the blind spot.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.sound = start(scene.damaged(None))
        self.blind_spots: collections.Counter[str] = collections.Counter()

    def judge(self, damage: Damage, *, starts_again: bool = True) -> Outcome:
        """Damage a byte, start, and say what became of it.

        Args:
            damage: the byte.
            starts_again: whether to close everything and start again, which must find the same.

        Raises:
            AssertionError: something that is not allowed.
        """
        try:
            return self._judge(damage, starts_again)
        except WrongBeliefError:
            blind = next((each for each in BLIND_SPOTS if each.covers(self._scene, damage)), None)
            if blind is None:
                raise
        self.blind_spots[blind.name] += 1
        return Outcome.UNDETECTABLE

    def _judge(self, damage: Damage, starts_again: bool) -> Outcome:
        file_system = self._scene.damaged(damage)
        before = file_system.contents()
        try:
            found = start(file_system)
        except RaftLogError:
            changed = {path for path, data in before.items() if file_system.contents().get(path) != data}
            assert not changed, f"refused, and changed: {changed}"
            assert damage.name in {"meta.properties", "partition.metadata"}, "what can be opened is refused"
            return Outcome.REFUSED
        finally:
            assert file_system.step_count <= MOST_STEPS, f"{file_system.step_count} disk operations"
        self._check_nothing_is_wrong(found)
        if starts_again:
            again = start(file_system.settled())
            assert _without_report(again) == _without_report(found), "another start finds something else"
        if found.quarantine is not None:
            return self._quarantined(damage, found, found.quarantine, before, file_system.contents())
        after = file_system.contents()
        if ActionKind.LOST in found.actions:
            return self._lost(damage, found, before, after)
        assert found.start_offset <= self.sound.start_offset
        if found.end_offset != self.sound.end_offset:
            return self._cut(damage, found, before, after)
        path, _ = self._scene.files[damage.name]
        return self._whole(found, is_untouched=file_system.contents().get(path) == before[path])

    def _check_nothing_is_wrong(self, found: Found) -> None:
        for base_offset, data in found.batches.items():
            _believe(data == self._scene.history[base_offset], f"wrong data at offset {base_offset}")
        for offset in found.states.keys() & self.sound.states.keys():
            assert found.states[offset] == self.sound.states[offset], f"wrong voters at offset {offset}"
        for snapshot_id, data in found.snapshots.items():
            assert data == self.sound.snapshots[snapshot_id], f"wrong data in snapshot {snapshot_id}"
        _believe(found.vote == VOTE or not found.may_vote, f"another vote: {found.vote}")
        _believe(found.directory_id == self.sound.directory_id, f"another directory id: {found.directory_id}")

    def _quarantined(
        self,
        damage: Damage,
        found: Found,
        quarantine: Quarantine,
        before: dict[str, bytes],
        after: dict[str, bytes],
    ) -> Outcome:
        assert found.end_offset == quarantine.first_bad_offset
        assert found.first_bad_is_refused, "a quarantined log serves what is bad, or leads"
        assert quarantine.durable_end_offset > quarantine.first_bad_offset
        if damage.name.endswith(".log"):
            first_bad_offset = self._scene.base_offset_at(damage.name, damage.position)
            # What lies below the log start is not served anyway.
            allowed = {first_bad_offset, max(first_bad_offset, self.sound.start_offset)}
            if found.start_offset > self.sound.start_offset:
                assert ActionKind.LOST in found.actions
                allowed = {self._restart(first_bad_offset)}
            assert quarantine.first_bad_offset in allowed, f"quarantined from {quarantine.first_bad_offset} on"
        else:
            assert damage.name.endswith(".checkpoint"), "quarantined, and the log is sound"
            assert found.end_offset == 0
        has_restarted = found.start_offset > self.sound.start_offset
        for path, data in before.items():
            is_kept = data in after.values() if has_restarted else after.get(path) == data
            assert not path.endswith(".log") or is_kept, f"{path} was changed"
        return Outcome.QUARANTINED

    def _restart(self, first_bad_offset: int) -> int:
        """Return where a log restarts of which nothing is left before the damage: at its newest snapshot."""
        bases = [int(name.removesuffix(".log")) for name in self._scene.files if name.endswith(".log")]
        assert first_bad_offset == min(bases), "a log that could be continued restarts"
        return max(self.sound.snapshots).offset

    def _lost(self, damage: Damage, found: Found, before: dict[str, bytes], after: dict[str, bytes]) -> Outcome:
        newest = max(self.sound.snapshots)
        assert found.start_offset == found.end_offset == newest.offset == self.sound.end_offset
        assert damage.name.endswith(".log"), "something else than a segment is damaged, and records are lost"
        last = self._scene.base_offset_at(damage.name, damage.position)
        assert RecordBatch(self._scene.history[last]).next_offset == newest.offset, "more than the last batch is lost"
        kept = [data for path, data in after.items() if ".damaged-" in path or ".superseded-" in path]
        for path, data in before.items():
            is_old = path.endswith((".log", ".checkpoint")) and data not in after.values()
            assert not is_old or data in kept, f"{path} is gone"
        return Outcome.LOST

    def _cut(self, damage: Damage, found: Found, before: dict[str, bytes], after: dict[str, bytes]) -> Outcome:
        assert self._scene.is_ours, "a complete batch of Kafka's is cut"
        path, _ = self._scene.files[damage.name]
        assert before[path] == after[path] + after[f"{path}.torn-{len(after[path])}"], "what was cut is not kept"
        assert found.end_offset >= self._scene.durable_end_offset, "silently shorter"
        assert ActionKind.CUT in found.actions, "silently shorter, by something that was not durable"
        assert self._scene.base_offset_at(damage.name, damage.position) == found.end_offset
        assert RecordBatch(self._scene.history[found.end_offset]).next_offset == self.sound.end_offset
        return Outcome.CUT

    def _whole(self, found: Found, *, is_untouched: bool) -> Outcome:
        assert {each: data for each, data in found.batches.items() if each in self.sound.batches} == (
            self.sound.batches
        )
        assert self.sound.states.items() <= found.states.items()
        if not found.may_vote:
            return Outcome.NO_VOTE
        if found.snapshots != self.sound.snapshots:
            assert ActionKind.SET_ASIDE in found.actions
            return Outcome.SET_ASIDE
        return Outcome.IDENTICAL if is_untouched else Outcome.REPAIRED


def _is_epoch_of_batch(scene: Scene, damage: Damage) -> bool:
    """Whether a byte is of a partition leader epoch: 12 to 15 of a batch."""
    if not damage.name.endswith(".log"):
        return False
    base_offset, position = int(damage.name.removesuffix(".log")), damage.position
    while position >= len(scene.history[base_offset]):
        position -= len(scene.history[base_offset])
        base_offset = RecordBatch(scene.history[base_offset]).next_offset
    return position in range(12, 16)


BLIND_SPOTS: Final = (
    Blind(
        "the epoch of a batch, in a directory of Kafka's",
        "No CRC covers it, as brokers fill it in afterwards. Where it breaks the order of epochs it is found, but "
        "the batch behind it may get the blame; else leader-epoch-checkpoint alone contradicts it, which has no CRC "
        "and follows from the log. Once raftlog has opened the directory there are two witnesses, and no blind spot.",
        lambda scene, damage: not scene.is_ours and _is_epoch_of_batch(scene, damage),
    ),
    Blind(
        "a number of quorum-state, in a directory of Kafka's",
        "The file has no checksum, and there are no copies yet: another digit is another vote.",
        lambda scene, damage: not scene.is_ours and damage.name == "quorum-state",
    ),
    Blind(
        "a higher epoch in quorum-state",
        "It may be Kafka's own later write. The replica has not voted in that epoch, so that it votes twice in none; "
        "it may take a wrong replica for the leader until the next epoch.",
        lambda scene, damage: damage.name == "quorum-state",
    ),
    Blind(
        "the directory id in meta.properties",
        "Nothing else says it, unless the caller does. The replica is not the voter any more that it was.",
        lambda scene, damage: damage.name == "meta.properties",
    ),
)
