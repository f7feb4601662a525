# SPDX-License-Identifier: Apache-2.0
"""Logs and snapshots with control records that raft refuses, or loads though they look wrong."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.builder import RecordBatchBuilder
from raftlog.records.messages.control import (
    ControlRecordType,
    ControlValue,
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    Voter,
    VotersRecord,
    VotersRecordEndpoint,
    VotersRecordVoter,
    control_key,
    write_control_record,
)
from raftlog.tools.image.cluster_image import MetadataBatch, StoredControl
from raftlog.uuid_text import ZERO_UUID

SNAPSHOT_ID: Final = OffsetAndEpoch(5, 1)
BOOTSTRAP_ID: Final = OffsetAndEpoch(0, 0)


class ControlLog(NamedTuple):
    """Control records, and what becomes of them.

    Attributes:
        batches: of the log; it begins where the snapshot ends, or at 0.
        rule: that ends all releases; empty if they load the log.
        offset: of the record, or in the snapshot.
        snapshot: the records of the first batch of a snapshot; none if there is no snapshot.
        snapshot_id: of the snapshot.
    """

    batches: Sequence[Sequence[StoredControl]] = ()
    rule: str = ""
    offset: int = -1
    snapshot: Sequence[StoredControl] = ()
    snapshot_id: OffsetAndEpoch = SNAPSHOT_ID

    @property
    def start_offset(self) -> int:
        """Where the log begins, inclusive."""
        return self.snapshot_id.offset if self.snapshot else 0

    @property
    def story(self) -> list[MetadataBatch]:
        """The batches of the log."""
        found, offset = [], self.start_offset
        for number, records in enumerate(self.batches):
            found.append(MetadataBatch(offset, offset + len(records), 1, 1000 + number, (), records))
            offset += len(records)
        return found

    @property
    def log_bytes(self) -> list[tuple[MetadataBatch, bytes]]:
        """The batches of the log, and as they are stored."""
        return [(each, stored(each.base_offset, each.controls)) for each in self.story]

    @property
    def snapshot_bytes(self) -> bytes:
        """The snapshot as it is stored."""
        return stored(0, self.snapshot) + stored(len(self.snapshot), [control(SnapshotFooterRecord())])


def stored(base_offset: int, records: Sequence[StoredControl]) -> bytes:
    """A control batch."""
    builder = RecordBatchBuilder(base_offset, partition_leader_epoch=1, is_control=True)
    for each in records:
        builder.append(1000, each.key, each.value)
    return builder.build()


def control(value: ControlValue) -> StoredControl:
    """A record with a value."""
    return StoredControl(*write_control_record(value))


def voter(
    number: int, *listeners: str, least: int = 0, most: int = 1, directory: UUID | None = None
) -> VotersRecordVoter:
    """A voter."""
    endpoints = tuple(VotersRecordEndpoint(name, "h", 9) for name in listeners or ("L",))
    return VotersRecordVoter(number, directory or UUID(int=1000 + number), endpoints, least, most)


def voters(*of: VotersRecordVoter, version: int = 0) -> StoredControl:
    """The record of some voters."""
    return control(VotersRecord(of, version))


def level(number: int, version: int = 0) -> StoredControl:
    """The record of a level of kraft.version."""
    return control(KRaftVersionRecord(number, version))


def raw(kind: int, value: bytes | None) -> StoredControl:
    """A record of any type with any value."""
    return StoredControl(b"\0\0" + kind.to_bytes(2, "big", signed=True), value)


LEADER: Final = control(LeaderChangeMessage(1, (Voter(1),), (Voter(1),)))
HEADER: Final = control(SnapshotHeaderRecord(5))
ONE: Final = level(1)
_KEY: Final = control_key(ControlRecordType.KRAFT_VERSION)
_SAME: Final = UUID(int=7)


def _of_types() -> Iterator[tuple[str, ControlLog]]:
    """Each type, and those beside: without a value, with an empty one, and with one that is too short or fits."""
    for kind in (-(1 << 15), -1, *ControlRecordType, 7, (1 << 15) - 1):
        name = f"type {int(kind)}"
        yield f"{name} without a value", ControlLog([[LEADER, raw(kind, None)]], "control-value", 1)
        yield f"{name} with an empty value", ControlLog([[LEADER, raw(kind, b"")]], "control-value", 1)
        if kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            rule = "control-place"
        else:
            rule = "control-value" if kind in list(ControlRecordType) else "control-type"
        yield f"{name} with one byte", ControlLog([[LEADER], [raw(kind, b"\0")]], rule, 1)


CONTROL_LOGS: Final = dict(_of_types()) | {
    "kraft.version -1": ControlLog([[LEADER], [level(-1)]], "kraft-version", 1),
    "kraft.version 0": ControlLog([[LEADER], [level(0)]]),
    "kraft.version 1": ControlLog([[LEADER], [ONE]]),
    "kraft.version 2": ControlLog([[LEADER, level(2)]], "kraft-version", 1),
    "kraft.version 1, then 0": ControlLog([[ONE], [voters(voter(1))], [level(0)]]),
    "kraft.version 1 twice": ControlLog([[ONE, ONE]]),
    "an unknown version of a level": ControlLog([[level(1, 7)], [level(1, -1)]]),
    "an unknown version of voters": ControlLog([[ONE, voters(voter(1), version=7)]]),
    "an unknown version of a key": ControlLog([[StoredControl(b"\0\1\0\5", ONE.value)]]),
    "a negative version of a key": ControlLog([[StoredControl(b"\xff\xff\0\5", ONE.value)]], "control-key", 0),
    "a long key": ControlLog([[StoredControl(_KEY + b"x", ONE.value)]]),
    "a short key": ControlLog([[StoredControl(_KEY[:3], ONE.value)]], "control-key", 0),
    "an empty key": ControlLog([[StoredControl(b"", ONE.value)]], "control-key", 0),
    "no key": ControlLog([[StoredControl(None, ONE.value)]], "control-key", 0),
    "a level with a byte too many": ControlLog([[StoredControl(_KEY, (ONE.value or b"") + b"x")]]),
    "a level that ends early": ControlLog([[StoredControl(_KEY, (ONE.value or b"")[:-1])]], "control-value", 0),
    "a marker": ControlLog([[control(EndTxnMarker(committed=True, coordinator_epoch=1))]], "control-place", 0),
    "the bounds of a snapshot": ControlLog([[HEADER], [control(SnapshotFooterRecord())]]),
    "voters at kraft.version 0": ControlLog([[LEADER], [voters(voter(1))]]),
    "voters before their level": ControlLog([[voters(voter(1)), ONE]]),
    "no voters": ControlLog([[ONE, voters()]]),
    "a negative voter": ControlLog([[ONE, voters(voter(-1))]]),
    "a voter twice": ControlLog([[ONE, voters(voter(1), voter(1))]]),
    "a directory of two voters": ControlLog([[ONE, voters(voter(1, directory=_SAME), voter(2, directory=_SAME))]]),
    "a voter without a directory": ControlLog([[ONE, voters(voter(1, directory=ZERO_UUID))]]),
    "a listener twice": ControlLog([[ONE, voters(voter(1, "L", "l"))]]),
    "a listener without a name": ControlLog([[ONE, voters(voter(1, ""))]], "voters", 1),
    "a listener that is blank": ControlLog([[ONE, voters(voter(1, " \t"))]], "voters", 1),
    "a level that is not supported": ControlLog([[ONE, voters(voter(1, least=2, most=3))]]),
    "a negative range": ControlLog([[ONE, voters(voter(1, least=-1))]], "voters", 1),
    "a range without a level": ControlLog([[ONE, voters(voter(1, least=2))]], "voters", 1),
    "other voters at once": ControlLog([[ONE, voters(voter(1))], [voters(voter(2), voter(3))]]),
    "a snapshot": ControlLog(snapshot=[HEADER, ONE, voters(voter(1))]),
    "a snapshot, and other voters": ControlLog([[voters(voter(2))]], snapshot=[HEADER, ONE, voters(voter(1))]),
    "a snapshot at kraft.version 2": ControlLog([], "kraft-version", 1, [HEADER, level(2)]),
    "a snapshot with two levels": ControlLog([], "control-twice", 2, [HEADER, ONE, ONE]),
    "a snapshot with two sets": ControlLog([], "control-twice", 2, [HEADER, voters(voter(1)), voters(voter(1))]),
    "a snapshot with an unknown type": ControlLog([], "control-type", 1, [HEADER, raw(9, b"x")]),
    "a snapshot, and a log at kraft.version 2": ControlLog([[level(2)]], "kraft-version", 5, [HEADER, ONE]),
    "a bootstrap snapshot, and the same in the log": ControlLog(
        [[LEADER, ONE, voters(voter(1))]], "", -1, [HEADER, ONE, voters(voter(1))], BOOTSTRAP_ID
    ),
    "a bootstrap snapshot at kraft.version 2": ControlLog(
        [[LEADER]], "kraft-version", 1, [HEADER, level(2)], BOOTSTRAP_ID
    ),
}
"""By what is wrong, or is not."""
