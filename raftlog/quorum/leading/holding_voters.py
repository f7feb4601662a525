# SPDX-License-Identifier: Apache-2.0
"""Holds a voter set back until this leader's disk has it: from its records on, nothing is served before.

A follower may fetch other records before the leader has flushed them. A voter set is in force where it is known, so a
replica that it removes, and that is the only one to have it, neither leads nor votes for one with a shorter log. From
two voters to one, that would stop the quorum for ever, if the leader loses the record in a crash.

Source: KafkaRaftClient#maybeAppendBatches, which flushes all records before any is served. DECISIONS.md 66.
"""

import contextlib

from raftlog.errors import CorruptBatchError
from raftlog.quorum.leadership import Leadership
from raftlog.quorum.seam.log_view import LogView
from raftlog.records.batches.batch import whole_batches


def servable_end_offset(leadership: Leadership, log: LogView) -> int:
    """Return up to where followers may read, exclusive: the log end, or what is flushed if that lacks a voter set."""
    return log.flushed_offset if is_holding(leadership, log) else log.state.end_offset


def has_more_to_serve(leadership: Leadership, before: LogView, now: LogView) -> bool:
    """Whether followers may read further than before."""
    return servable_end_offset(leadership, now) > servable_end_offset(leadership, before)


def servable_records(leadership: Leadership, log: LogView, records: bytes | memoryview) -> bytes | memoryview:
    """Return what was read, without what may not be served yet.

    While a voter set is held back, only whole batches are served: the offset of one that is cut off may be unknown.

    Args:
        leadership: of this replica.
        log: as it is now.
        records: batches; the last one may be cut off, and its length may have rotted. They may have been read at any
            time since the leadership began, so perhaps beyond the log end that is known.
    """
    if not is_holding(leadership, log):
        return records
    end = 0
    with contextlib.suppress(CorruptBatchError):  # No follower takes a batch of such a length.
        for batch in whole_batches(records):
            if batch.base_offset >= log.flushed_offset:
                break
            end += batch.size_bytes
    return records[:end]


def is_holding(leadership: Leadership, log: LogView) -> bool:
    """Whether a voter set was handed to the log, and is not flushed yet. All before it is flushed."""
    offset = leadership.voters_offset
    return offset is not None and log.flushed_offset <= offset < leadership.handed_end_offset
