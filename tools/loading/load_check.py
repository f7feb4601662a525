# SPDX-License-Identifier: Apache-2.0
"""Replays metadata batches by the rules of each release of Kafka, and says at which record a controller stops.

A controller of Kafka replays each record twice: by its managers, and by the loader of the image. A fault of either ends
the process. Both decode a batch before they replay any of it. Records of a metadata transaction are replayed at once,
and undone if it is aborted.

All releases that have not stopped are in one state: what a release refuses ends its own replay, and takes effect for
the others.

Source: QuorumController$QuorumMetaLogListener, MetadataLoader, OffsetControlManager, ActivationRecordsGenerator.
"""

import functools
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import attrs

from raftlog.errors import DecodeError, ReplayRefusedError, UnsupportedVersionError
from raftlog.records.messages.generated_source import NOT_USUAL
from raftlog.records.messages.metadata import read_metadata_record
from raftlog.records.messages.schema import message_types
from raftlog.tools.image.cluster_image import BatchPlace, MetadataBatch
from raftlog.tools.image.replay import ABORT, BEGIN, FRAME_SIZE, REPLAYS, decoder
from raftlog.tools.image.tables import Tables
from raftlog.tools.loading.control_records import NEWER_CONTROL_RULES, ControlReplay
from raftlog.tools.loading.controller import REPLAYS_AFTER_RULES, RULES, ControllerState, prepared
from raftlog.tools.loading.features import (
    CHECKED_RELEASES,
    LAST_TO_MIGRATE,
    MIGRATION_LEVEL,
    NO_MIGRATION_STATE,
    RELEASES_WITH_DEFAULT,
    TRANSACTIONS_LEVEL,
    begins_anew,
    default_level,
)
from raftlog.tools.payloads.format_features import METADATA_VERSION

__all__ = ["NEWER_RULES", "SNAPSHOT_END", "LoadCheck", "LoadFault"]

_UNKNOWN_RECORD: Final = "unknown-record"
_UNKNOWN_VERSION: Final = "unknown-version"
NEWER_RULES: Final = frozenset({_UNKNOWN_RECORD, _UNKNOWN_VERSION, "feature-level"}) | NEWER_CONTROL_RULES
"""The rules that records of a newer release break: they are no faults of the log."""
SNAPSHOT_END: Final = "snapshot-end"
"""The rule that a record breaks by its place: beside another snapshot, it breaks none."""


class LoadFault(NamedTuple):
    """Why controllers of a release do not start.

    Attributes:
        rule: its name.
        reason: what is wrong.
        offset: of the record, or the end of the log, exclusive, if no record is to blame.
        record_index: of the record in its batch, from 0; None if no record is to blame.
        record: the name of the record's type; None if it is not known, or no record is to blame.
        source: the method of Kafka that refuses it.
        is_in_snapshot: whether the record is one of the snapshot; its offset is then the one there.
        place: where its batch is stored, if the batches say so; None if no record is to blame.
    """

    rule: str
    reason: str
    offset: int
    record_index: int | None
    record: str | None
    source: str
    is_in_snapshot: bool = False
    place: BatchPlace | None = None

    @property
    def members(self) -> dict[str, Any]:
        """Everything but the place, by name."""
        return {name: value for name, value in self._asdict().items() if name != "place"}


class _Read(NamedTuple):
    """A record that at least one release can read."""

    record_index: int
    name: str
    message: Mapping[str, Any]


@attrs.define
class LoadCheck:
    """A replay by the rules of several releases; ``apply`` advances it by one batch.

    Attributes:
        faults: the first fault of each release that has stopped, by name.
        going_on: the other releases, by name, oldest first.
        end_offset: the end of the last batch, exclusive.
        in_snapshot: whether the batches are those of a snapshot, up to ``begin_log``.
        skips: of a replay for one release: a record that it refuses has no effect, and the replay goes on.
        skipped: the faults of the records without effect, in order; empty unless it ``skips``.
    """

    going_on: tuple[str, ...] = CHECKED_RELEASES
    faults: dict[str, LoadFault] = attrs.field(factory=dict)
    end_offset: int = 0
    in_snapshot: bool = False
    skips: bool = False
    skipped: list[LoadFault] = attrs.field(factory=list)
    _state: ControllerState = attrs.field(factory=ControllerState)
    _before: ControllerState | None = None
    """The state in which the open transaction began; None if none is open."""
    _transaction_offset: int = 0
    _has_records: bool = False
    _controls: ControlReplay = attrs.field(factory=ControlReplay)
    _snapshot_end: int = 0
    """Where the snapshot ends, exclusive; 0 if there is none."""
    _place: BatchPlace | None = None
    """Where the batch is that is being replayed."""

    def apply(self, batch: MetadataBatch) -> None:
        """Replay the next batch, for the releases that have not stopped."""
        self.end_offset = batch.next_offset
        self._has_records = self._has_records or bool(batch.values)
        self._place = batch.place
        if batch.controls:
            self._read_controls(batch)
        for read in self._decoded(batch):
            if not self.going_on:
                return
            self._replay(batch.base_offset + read.record_index, read)

    @property
    def tables(self) -> Tables:
        """The image after the last batch; inside a transaction, with its records. Do not modify it."""
        return self._state.tables

    @property
    def is_in_transaction(self) -> bool:
        """Whether a metadata transaction is open after the last batch."""
        return self._before is not None

    def begin_log(self, start_offset: int) -> None:
        """Go on with the batches of the log from an offset on, inclusive: where the snapshot ends, or 0."""
        self.in_snapshot = False
        self.end_offset = start_offset
        self._snapshot_end = start_offset

    def finish(self) -> dict[str, LoadFault]:
        """Let the controllers become active at the end of the log, and return the fault of each release that stops."""
        for release in self.going_on:
            fault = self._open_fault(release) if self._before is not None else self._version_fault(release, self._state)
            fault = fault or self._migration_fault(release)
            if fault is not None:
                self._stop((release,), fault)
        return self.faults

    def _open_fault(self, release: str) -> LoadFault | None:
        """Return the fault of a release that becomes active while a transaction is open, which it aborts, if any."""
        level = self._state.tables.features.get(METADATA_VERSION, default_level(release))
        if level is None and begins_anew(release):
            return None
        if level is not None and level < TRANSACTIONS_LEVEL:
            transaction = f"the transaction that begins at offset {self._transaction_offset} is not ended"
            reason = f"{transaction}; only {METADATA_VERSION} {TRANSACTIONS_LEVEL} and later can abort it, not {level}"
            return self._at_end("open-transaction", reason, "ActivationRecordsGenerator")
        return self._version_fault(release, self._before)

    def _version_fault(self, release: str, state: ControllerState | None) -> LoadFault | None:
        """Return the fault of a release whose loader publishes a state without ``metadata.version``, if it is one."""
        has_level = state is None or METADATA_VERSION in state.tables.features
        if has_level or not self._has_records or release in RELEASES_WITH_DEFAULT:
            return None
        source = "FeaturesImage#metadataVersionOrThrow"
        return self._at_end("no-metadata-version", f"no record sets {METADATA_VERSION}", source)

    def _migration_fault(self, release: str) -> LoadFault | None:
        level = self._state.tables.features.get(METADATA_VERSION, 0)
        if self._state.migration_state != NO_MIGRATION_STATE or level < MIGRATION_LEVEL or release != LAST_TO_MIGRATE:
            return None
        reason = f"the migration from ZooKeeper is in state {NO_MIGRATION_STATE}, which stands for none"
        return self._at_end("zk-migration-state", reason, "ActivationRecordsGenerator")

    def _at_end(self, rule: str, reason: str, source: str) -> LoadFault:
        return LoadFault(rule, reason, self.end_offset, None, None, source)

    def _stop(self, releases: Iterable[str], fault: LoadFault) -> None:
        stopped = tuple(releases)
        if self.skips:
            self.skipped.append(fault)
            return
        self.faults |= dict.fromkeys(stopped, fault)
        self.going_on = tuple(each for each in self.going_on if each not in stopped)

    def _read_controls(self, batch: MetadataBatch) -> None:
        """Read control records, as raft does; all releases that go on have read the same ones."""
        for release, fault in self._controls.faults(
            batch.controls, self.going_on, in_snapshot=self.in_snapshot
        ).items():
            index, rule, reason, record, source = fault
            offset = batch.base_offset + index
            found = LoadFault(rule, reason, offset, index, record, source, self.in_snapshot, self._place)
            self._stop((release,), found)

    def _decoded(self, batch: MetadataBatch) -> list[_Read]:
        """Return the records of a batch; stop the releases that cannot read one of them."""
        found: list[_Read] = []
        for index, value in enumerate(batch.values):
            read = _read_fast(index, value) or self._read_by_each(batch.base_offset + index, index, value)
            if read is not None:
                found.append(read)
        return found

    def _read_by_each(self, offset: int, index: int, value: bytes | None) -> _Read | None:
        """Read a record as each release does, and return it as the newest one of those that can."""
        read = None
        for release in self.going_on:
            try:
                record = read_metadata_record(value, level=release)
            except DecodeError as error:
                newer = _newer_version(value, release)
                rule = _UNKNOWN_VERSION if newer else "unreadable-record"
                rule = _UNKNOWN_RECORD if isinstance(error, UnsupportedVersionError) else rule
                source = "MetadataRecordSerde#read"
                reason = f"{newer}{error.reason}"
                name = _type_name(value)
                fault = LoadFault(rule, reason, offset, index, name, source, self.in_snapshot, self._place)
                self._stop((release,), fault)
            else:
                read = _Read(index, record.type.name, record.message)
        return read

    def _replay(self, offset: int, read: _Read) -> None:
        name, message = read.name, read.message
        replay = REPLAYS[name]
        if replay is None:
            self._bound(offset, read)
            return
        skipped = len(self.skipped)
        for rule in RULES.get(name, ()):
            for release in self.going_on:
                problem = rule.problem(self._state, message, release) if rule.applies_to(release) else None
                if problem is not None:
                    self._stop((release,), self._fault(rule.name, problem, offset, read, rule.source))
        if not self.going_on or len(self.skipped) > skipped:
            return
        change = prepared(self._state, name, message)
        try:
            REPLAYS_AFTER_RULES.get(name, replay)(self._state.tables, message)
        except ReplayRefusedError as error:
            self._stop(self.going_on, self._fault("contradiction", str(error), offset, read, "MetadataDelta#replay"))
        else:
            if change is not None:
                change()

    def _bound(self, offset: int, read: _Read) -> None:
        """Replay a record that begins or ends a transaction.

        Kafka keeps the state of a snapshot under the offset of its end, as if it had the record there; a transaction
        wants the state before its first record kept, and an older one than the newest cannot be added. A replay that
        skips records has the state, and goes on.

        Source: OffsetControlManager#endLoadSnapshot, SnapshotRegistry#getOrCreateSnapshot.
        """
        rule, source = "transaction-bounds", "OffsetControlManager#replay"
        is_open = self._before is not None
        if self.in_snapshot:
            problem = "a snapshot has no metadata transactions"
        elif is_open is (read.name == BEGIN):
            problem = "a transaction is open already" if is_open else "no transaction is open"
        elif read.name == BEGIN and offset == self._snapshot_end > 0 and not self.skips:
            rule, problem = SNAPSHOT_END, "a transaction begins at the offset where the snapshot ends"
        else:
            if read.name == ABORT and self._before is not None:
                self._state = self._before
            self._before = self._state.copy() if read.name == BEGIN else None
            self._transaction_offset = offset
            return
        self._stop(self.going_on, self._fault(rule, problem, offset, read, source))

    def _fault(self, rule: str, reason: str, offset: int, read: _Read, source: str) -> LoadFault:
        index, name = read.record_index, read.name
        return LoadFault(rule, reason, offset, index, name, source, self.in_snapshot, self._place)


def _read_fast(index: int, value: bytes | None) -> _Read | None:
    """Read a usual record of a type and version that all releases know; None for any other."""
    if value is None:
        return None
    frame = value[:FRAME_SIZE]
    found = decoder(frame)
    if found is None or _lacking(frame):
        return None
    try:
        message, end = found.read(value, FRAME_SIZE)
    except NOT_USUAL:
        return None
    return _Read(index, found.name, message) if end == len(value) else None


@functools.lru_cache(maxsize=512)
def _lacking(frame: bytes) -> tuple[str, ...]:
    """Return the releases that do not know the type and version of a frame that the newest knows."""
    kind = _kinds()[frame[1]]
    return tuple(
        each for each in CHECKED_RELEASES if not kind.is_known(each) or frame[2] not in kind.schema.versions_at(each)
    )


@functools.cache
def _kinds() -> dict[int | None, Any]:
    return {kind.api_key: kind for kind in message_types("metadata-records").values()}


def _newer_version(value: bytes | None, release: str) -> str:
    """Return that a record has a version that a release does not know, as the beginning of a reason; else nothing."""
    name = _type_name(value)
    if name is None or value is None or len(value) < FRAME_SIZE or not _kinds()[value[1]].is_known(release):
        return ""
    known = _kinds()[value[1]].schema.versions_at(release)
    if value[2] in known:
        return ""
    return f"it has version {value[2]}, and {release} knows {known.lowest} to {known.highest}: "


def _type_name(value: bytes | None) -> str | None:
    """Return the name of the type of a record that some release cannot read; None if no release knows it."""
    kind = _kinds().get(value[1]) if value is not None and len(value) > 1 and value[0] == 1 else None
    return None if kind is None else kind.name
