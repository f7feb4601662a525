# SPDX-License-Identifier: Apache-2.0
"""Whether raft writes such control batches: a log takes none that its state machine cannot follow."""

import functools
from typing import Final

from raftlog.errors import DecodeError, InvalidRecordError, MissingExtraError
from raftlog.kraft_version import KRaftVersion
from raftlog.records import limits
from raftlog.records.batch import RecordBatch
from raftlog.records.control import ControlValue, KRaftVersionRecord, VotersRecord, read_control_record
from raftlog.records.record import Record
from raftlog.records.voters import voter_set

_REMEMBERED_SIZE_BYTES: Final = 1024
"""More than a record of a few voters takes."""


def check_is_bare(record: Record, offset: int) -> None:
    """Check that a control record stands at its offset, and has nothing that raft gives none.

    Raises:
        InvalidRecordError: it stands elsewhere, or has headers or a time of its own.
    """
    if record.offset != offset or record.timestamp_delta != 0 or record.headers:
        reason = f"a control record at offset {record.offset}, not {offset}, or with headers or a time of its own"
        raise InvalidRecordError(reason, "raft-batch")


def control_batch_problem(batch: RecordBatch, *, knows_levels: bool = False) -> str | None:
    """Say in one clause what is wrong with the records of a control batch; None if nothing is. The CRC is not checked.

    A control record of a type that is not known is sound: a newer Kafka may have written it. So is what takes a codec
    whose package is not installed: nobody can tell.

    Args:
        batch: the batch.
        knows_levels: whether a level of kraft.version that is not known is a problem too. It is where a batch is to be
            appended; in a log that is there it is a newer version's, and no damage.
    """
    try:
        records = batch.records(check_crc=False, max_size=limits.MAX_BATCH_SIZE)
        for offset, record in enumerate(records, batch.base_offset):
            check_is_bare(record, offset)
            value = _read(record.key, record.value)
            if knows_levels and isinstance(value, KRaftVersionRecord):
                KRaftVersion.from_level(value.kraft_version)
    except DecodeError as error:
        return f"a control batch that does not read: {error.reason}"
    except MissingExtraError:
        return None
    return None


def _read(key: bytes | None, value: bytes | None) -> ControlValue | None:
    if len(key or b"") + len(value or b"") <= _REMEMBERED_SIZE_BYTES:
        return _read_once(key, value)
    return _read_anew(key, value)


def _read_anew(key: bytes | None, value: bytes | None) -> ControlValue | None:
    found = read_control_record(key, value).value
    if isinstance(found, VotersRecord):
        voter_set(found)  # It raises where the record makes none.
    return found


@functools.lru_cache(maxsize=1024)
def _read_once(key: bytes | None, value: bytes | None) -> ControlValue | None:
    """Read a record that may well come again, epoch after epoch."""
    return _read_anew(key, value)
