# SPDX-License-Identifier: Apache-2.0
"""What a follower says between the batches of a log."""

import enum
from typing import Any

import attrs

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.file_names import FileName


class Event(enum.Enum):
    """What has become of a followed log; the value is the word for it in JSON lines."""

    TRUNCATED = "truncated"
    """Batches that were seen are no longer in the log."""
    SKIPPED = "skipped"
    """The log continues after offsets that were not seen."""
    WAITING = "waiting"
    """There is no log at the path, or none any more."""


@attrs.frozen
class Notice:
    """Something that is said between batches.

    Attributes:
        event: what has happened.
        path: of the log's directory, or of the segment if that alone is followed.
        offset: of a truncation or a gap, the first offset that is concerned, inclusive; None while waiting.
        end_offset: the offset after the last one that is concerned; None while waiting.
        is_exact: of a truncation, whether nothing below ``offset`` can be gone; else nothing below it is remembered.
        snapshot_id: of a gap, the snapshot that has the outcome of the records in it; None if there is none.
    """

    event: Event
    path: str
    offset: int | None = None
    end_offset: int | None = None
    is_exact: bool = True
    snapshot_id: OffsetAndEpoch | None = None

    @property
    def leaves_a_gap(self) -> bool:
        """Whether the output lacks records for good."""
        return self.event is Event.SKIPPED

    @property
    def text(self) -> str:
        """The notice as a sentence, without the path."""
        if self.event is Event.WAITING or self.offset is None or self.end_offset is None:
            return "no log is there: waiting for one"
        offsets = _span(self.offset, self.end_offset)
        if self.event is Event.TRUNCATED:
            where = f"at {self.offset}" if self.is_exact else f"at or below {self.offset}"
            return f"{offsets} no longer there: the log was truncated {where}"
        cause = "not read, and the log does not have them"
        if self.snapshot_id is None:
            return f"{offsets} {cause}"
        return f"{offsets} {cause}: they are before the end of {FileName.of_snapshot(self.snapshot_id)}"

    @property
    def members(self) -> dict[str, Any]:
        """The notice for programs, by name, without the path."""
        snapshot = self.snapshot_id
        return {
            "event": self.event.value,
            "offset": self.offset,
            "end_offset": self.end_offset,
            "is_exact": self.is_exact,
            "snapshot_end_offset": None if snapshot is None else snapshot.offset,
            "snapshot_epoch": None if snapshot is None else snapshot.epoch,
            "reason": self.text,
        }


def _span(offset: int, end_offset: int) -> str:
    return f"offset {offset} is" if end_offset == offset + 1 else f"offsets {offset} to {end_offset - 1} are"
