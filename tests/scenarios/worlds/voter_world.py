# SPDX-License-Identifier: Apache-2.0
"""The world of voter sets: a log, and the state machine that reads voters and kraft.version from it.

A voter is written ``3``, or ``3@b`` if it is not the replica with directory ``a``: a replica of the same id with
another disk. A voter set is written ``{1 2 3@b}``.
"""

import uuid
from collections.abc import Callable, Iterable
from typing import Final

from raftlog.log.control_records import KRaftControlRecordStateMachine, update_state
from raftlog.log.replicated_log import ReplicatedLog
from raftlog.log.snapshots import begin_snapshot
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.messages.control import ControlValue, KRaftVersionRecord
from raftlog.records.messages.voters import voters_record
from raftlog.snapshot.reader import RecordsSnapshotReader
from raftlog.testing.contracts.log_harness import KEEP_ALL
from raftlog.voters.voter_set import Endpoints, ReplicaKey, SupportedVersionRange, VoterNode, VoterSet
from tests.log.control_batches import TIMESTAMP, control_bytes, data_bytes
from tests.offset_notation import offset_and_epoch_text
from tests.scenarios.scenario_text import Step
from tests.scenarios.world import CommandError, World, command
from tests.scenarios.worlds.batch_notation import offsets_text
from tests.scenarios.worlds.log_world import LOG_FORMS

_DIRECTORIES: Final = "abcd"


def _key(notation: str) -> ReplicaKey:
    id_, _, directory = notation.partition("@")
    if not id_.isdecimal() or (directory or "a") not in _DIRECTORIES:
        raise CommandError(f"'{notation}' is no voter: write 3, or 3@b for one with another directory")
    return ReplicaKey(int(id_), uuid.UUID(int=int(id_) * 1000 + ord(directory or "a")))


def _voter_set(notations: Iterable[str]) -> VoterSet:
    keys = map(_key, notations)
    return VoterSet.of(
        VoterNode(key, Endpoints.of({"CONTROLLER": (f"node{key.id}", 9093)}), SupportedVersionRange(0, 1))
        for key in keys
    )


def _key_text(key: ReplicaKey) -> str:
    notations = [f"{key.id}", *(f"{key.id}@{directory}" for directory in _DIRECTORIES)]
    return next(notation for notation in notations if _key(notation) == key)


def _set_text(voters: VoterSet | None) -> str:
    return "none" if voters is None else f"{{{' '.join(map(_key_text, sorted(voters.voter_keys)))}}}"


class VoterWorld(World):
    """A log of epoch 1, and what reads it.

    Args:
        log: an empty log.
    """

    def __init__(self, log: ReplicatedLog) -> None:
        self._log = log
        self._keys: set[ReplicaKey] = set()
        self._begin_reading(VoterSet())

    def run(self, step: Step) -> str:
        """Run a step; errors name voters as scenarios do."""
        text = super().run(step)
        for key in self._keys:
            text = text.replace(str(key), _key_text(key))
        return text

    def close(self) -> None:
        """Close the log."""
        self._log.close()

    def _begin_reading(self, static_voters: VoterSet) -> None:
        self._machine = KRaftControlRecordStateMachine(static_voters)
        update_state(self._machine, self._log)

    def _named(self, notations: Iterable[str]) -> VoterSet:
        voters = _voter_set(notations)
        self._keys |= voters.voter_keys
        return voters

    @command
    def history(self) -> str:
        """Print which offsets can be asked for, and each voter set and kraft.version with its first offset."""
        machine = self._machine
        sets = [f"static {_set_text(machine.static_voters)}"] if machine.static_voters else []
        sets += [f"{_set_text(entry.value)} from {entry.offset}" for entry in machine.voter_sets()]
        versions = [f"{entry.value.value} from {entry.offset}" for entry in machine.kraft_versions()]
        return "\n".join(
            [
                f"known: {offsets_text(machine.start_offset, machine.next_offset - 1)}",
                f"voters: {', '.join(sets) or 'none'}",
                f"kraft.version: {', '.join(versions) or '0'}",
            ]
        )

    @command
    def static_voters(self, *voters: str) -> str:
        """Set the voters of the configuration, before a record names any."""
        self._begin_reading(self._named(voters))
        return self.history()

    # The log

    def _append(self, data: bytes) -> str:
        self._log.append_as_follower(data, 1)
        update_state(self._machine, self._log)
        return self.history()

    @command
    def data(self, count: int) -> str:
        """Append a batch of data records."""
        return self._append(data_bytes(self._log.end_offset.offset, count, epoch=1))

    @command
    def voters(self, *voters: str, kraft_version: int | None = None) -> str:
        """Append a batch with a VotersRecord, and a KRaftVersionRecord before it if there is a version."""
        values: list[ControlValue] = [voters_record(self._named(voters))]
        if kraft_version is not None:
            values.insert(0, KRaftVersionRecord(kraft_version))
        return self._append(control_bytes(self._log.end_offset.offset, values, epoch=1))

    @command
    def truncate(self, offset: int) -> str:
        """Truncate the log to an offset."""
        self._log.truncate_to(offset)
        update_state(self._machine, self._log)
        return self.history()

    @command
    def commit(self) -> str:
        """Move the high watermark to the log end."""
        self._log.update_high_watermark(self._log.end_offset.offset)
        return f"high-watermark {self._log.high_watermark.offset}"

    @command
    def snapshot(self, end_offset: int) -> str:
        """Write a snapshot of the records below an offset, and print what it says of voters."""
        writer = begin_snapshot(self._log, self._machine, end_offset, now_ms=TIMESTAMP)
        if writer is None:
            return "no snapshot is needed"
        with writer:
            writer.freeze(TIMESTAMP)
        raw = self._log.read_snapshot(OffsetAndEpoch(end_offset, 1))
        assert raw is not None
        with raw:
            header = RecordsSnapshotReader.of(raw).header
        said = f"voters {_set_text(header.voter_set)} kraft.version {header.kraft_version.value}"
        return f"snapshot {offset_and_epoch_text(raw.snapshot_id)}: {said}\n{self.history()}"

    @command
    def start_at_snapshot(self, end_offset: int) -> str:
        """Delete the records below the end of a snapshot."""
        self._log.delete_before_snapshot(OffsetAndEpoch(end_offset, 1))
        update_state(self._machine, self._log)
        return f"log: start {self._log.start_offset} end {self._log.end_offset.offset}"

    @command
    def read_again(self) -> str:
        """Read the log with a new state machine, as after a restart."""
        self._begin_reading(self._machine.static_voters)
        return self.history()

    # Questions

    @command
    def at(self, offset: int) -> str:
        """Print the voters that records had named at an offset, and the kraft.version."""
        voters, version = self._machine.voter_set_at_offset(offset), self._machine.kraft_version_at_offset(offset)
        return f"at {offset}: voters {_set_text(voters)} kraft.version {version.value}"

    @command
    def check(self, *voters: str) -> str:
        """Ask whether a leader may write a voter set next."""
        self._machine.check_voter_set(self._named(voters))
        return "may be written"

    @command
    def violations(self) -> str:
        """Print the voter sets that no leader should have written."""
        return "\n".join(map(str, self._machine.violations())) or "none"

    @command
    def compare(self, before: str, after: str) -> str:
        """Compare two voter sets: by the exact test for overlapping majorities, and by the test that Kafka makes."""
        old, new = self._named(before.split()), self._named(after.split())
        overlap = "overlap" if old.has_overlapping_majority(new) else "may not overlap"
        guard = "allows" if old.passes_kafka_change_guard(new) else "refuses"
        return f"majorities {overlap}; Kafka {guard} the change"


VOTER_WORLDS: Final[dict[str, Callable[[], World]]] = {
    name: lambda name=name: VoterWorld(LOG_FORMS[name](KEEP_ALL).log)  # type: ignore[misc]
    for name in ("memory", "file", "file-of-small-segments")
}
"""A world for each form of log; a scenario prints the same in all of them."""
