# SPDX-License-Identifier: Apache-2.0
"""What Kafka's raft client refuses in control records: it reads all of them before the controller gets any record.

All releases have the same rules. They do not look at the version that a value states, nor at the order of records: a
VotersRecord counts at kraft.version 0 and before a KRaftVersionRecord, and a level may become lower.

Source: RecordsIterator, ControlRecordType, KRaftControlRecordStateMachine, KRaftVersion, VoterSet, TreeMapLogHistory,
of 3.9.2, 4.0.2, 4.1.2, 4.2.1, 4.3.1, 4.4.0.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from raftlog.errors import DecodeError, InvalidRecordError
from raftlog.records.messages.control import (
    ControlRecordType,
    ControlValue,
    KRaftVersionRecord,
    VotersRecord,
    read_control_key,
    read_control_record,
)
from raftlog.records.messages.voters import voter_set
from raftlog.tools.image.cluster_image import StoredControl
from raftlog.tools.loading.features import unsupported_level
from raftlog.tools.payloads.format_features import KRAFT_VERSION

_KEY, _TYPE, _VALUE, _PLACE = "control-key", "control-type", "control-value", "control-place"
_LEVEL, _VOTERS, _TWICE = "kraft-version", "voters", "control-twice"
CONTROL_RULES: Final = frozenset({_KEY, _TYPE, _VALUE, _PLACE, _LEVEL, _VOTERS, _TWICE})
"""The rules of control records. A snapshot without such a record could have other voters, or another kraft.version."""
NEWER_CONTROL_RULES: Final = frozenset({_TYPE, _LEVEL})
"""Those that records of a newer release break."""
_MARKERS: Final = frozenset({ControlRecordType.ABORT, ControlRecordType.COMMIT})
_ITERATOR: Final = "RecordsIterator#decodeControlRecord"
_READ_FIELD: Final = "RecordsIterator#readField"


class ControlFault(NamedTuple):
    """Why the raft client refuses a control record.

    Attributes:
        record_index: of the record in its batch, from 0.
        rule: its name.
        reason: what is wrong.
        record: the name of the record's type; None if it is not known.
        source: the method of Kafka that refuses it.
    """

    record_index: int
    rule: str
    reason: str
    record: str | None
    source: str


class ControlReplay:
    """Reads the control records of a snapshot and of a log in order, as raft clients do."""

    def __init__(self) -> None:
        self._in_snapshot: set[type] = set()

    def faults(
        self, records: Sequence[StoredControl], releases: Sequence[str], *, in_snapshot: bool
    ) -> dict[str, ControlFault]:
        """Read the control records of the next batch, and return the first one that each release refuses."""
        found: dict[str, ControlFault] = {}
        for index, stored in enumerate(records):
            value = _read(index, stored)
            problem = value if isinstance(value, ControlFault) else None
            if in_snapshot and problem is None:
                problem = self._twice_fault(index, value)
            for release in releases:
                fault = problem or _content_fault(index, value, release)
                if fault is not None:
                    found.setdefault(release, fault)
        return found

    def _twice_fault(self, index: int, value: ControlValue | ControlFault) -> ControlFault | None:
        """Return what is wrong with a record of a snapshot whose values all are of one offset, that of its end."""
        if not isinstance(value, KRaftVersionRecord | VotersRecord):
            return None
        if type(value) in self._in_snapshot:
            reason = f"a snapshot has a second {_name(value)}, and both are of its end"
            return ControlFault(index, _TWICE, reason, _name(value), "TreeMapLogHistory#addAt")
        self._in_snapshot.add(type(value))
        return None


def _read(index: int, stored: StoredControl) -> ControlValue | ControlFault:
    """Return the value of a control record, or what is wrong with its bytes."""
    if not stored.key:
        what = "null" if stored.key is None else "empty"
        return ControlFault(index, _KEY, f"the key of a control record is {what}", None, _READ_FIELD)
    if not stored.value:
        what = "null" if stored.value is None else "empty"
        return ControlFault(index, _VALUE, f"the value of a control record is {what}", None, _READ_FIELD)
    try:
        kind = read_control_key(stored.key)
    except InvalidRecordError as error:
        return ControlFault(index, _KEY, error.reason, None, "ControlRecordType#parseTypeId")
    if kind in _MARKERS:
        return ControlFault(index, _PLACE, "a log of raft has no ABORT or COMMIT markers", "EndTxnMarker", _ITERATOR)
    try:
        value = read_control_record(stored.key, stored.value).value
    except DecodeError as error:
        return ControlFault(index, _VALUE, error.reason, None, _ITERATOR)
    return value or ControlFault(index, _TYPE, f"there is no type {kind} of control records", None, _ITERATOR)


def _content_fault(index: int, value: ControlValue | ControlFault, release: str) -> ControlFault | None:
    if isinstance(value, KRaftVersionRecord):
        problem = unsupported_level(release, KRAFT_VERSION, value.kraft_version)
        source = "KRaftVersion#fromFeatureLevel"
        return None if problem is None else ControlFault(index, _LEVEL, problem, _name(value), source)
    if isinstance(value, VotersRecord):
        try:
            voter_set(value)
        except InvalidRecordError as error:
            return ControlFault(index, _VOTERS, error.reason, _name(value), "VoterSet#fromVotersRecord")
    return None


def _name(value: ControlValue) -> str:
    return type(value).__name__
