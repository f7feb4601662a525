# SPDX-License-Identifier: Apache-2.0
"""A report of what opening a log directory found and did, as a value that can be printed."""

import enum

import attrs

from raftlog.log.replicated_log import Quarantine


class ActionKind(enum.Enum):
    """What was done to a file; the value is the word in the report."""

    CUT = "cut"
    """An unacknowledged torn tail was truncated; ``copy`` has its bytes."""
    LOST = "lost"
    """Records are damaged or missing, and a newer snapshot replaces them; what is left is kept."""
    REBUILT = "rebuilt"
    """The file is derived from the log, and was missing or different."""
    REMOVED = "removed"
    """The file was being deleted, unfinished, of a missing segment, or replaced by a snapshot or newer copies."""
    RENAMED = "renamed"
    """An interrupted rename to the file's plain name was completed."""
    SET_ASIDE = "set aside"
    """The file is damaged or replaced by another, and kept under a name that nothing reads."""
    SUPERSEDED = "superseded"
    """The file is sound, a newer snapshot replaces it, and it is kept under a name that nothing reads."""
    TAKEN = "taken"
    """Another program, such as Kafka, has written to the log since, and its writes are accepted."""
    IGNORED = "ignored"
    """The file is damaged or cannot be read, and the log does not need it."""


@attrs.frozen
class RecoveryAction:
    """One action of recovery.

    Attributes:
        kind: what was done.
        path: of the file.
        detail: why, in one clause.
        copy: the path at which removed bytes are kept; None if none are.
    """

    kind: ActionKind
    path: str
    detail: str
    copy: str | None = None

    def __str__(self) -> str:
        kept = "" if self.copy is None else f"; kept as {self.copy}"
        return f"{self.path}: {self.kind.value}: {self.detail}{kept}"


@attrs.frozen
class RecoveryReport:
    """What an open found and did.

    Attributes:
        start_offset: of the log, inclusive.
        end_offset: of the log, exclusive.
        durable_end_offset: the durable end, exclusive, that was stored beside the log; None if there was none, because
            Kafka wrote the directory, or it is new.
        was_closed: whether the log had been closed in order; None if this is not recorded.
        actions: in the order in which they were taken.
        quarantine: the damage below the durable point, which was left as it is.
    """

    start_offset: int
    end_offset: int
    durable_end_offset: int | None
    was_closed: bool | None
    actions: tuple[RecoveryAction, ...]
    quarantine: Quarantine | None

    def lines(self) -> tuple[str, ...]:
        """Return the report as lines of text."""
        shutdown = {True: ", closed in order", False: ", not closed in order", None: ""}[self.was_closed]
        known = "" if self.durable_end_offset is None else f", known to be durable up to {self.durable_end_offset}"
        first = f"the log holds offsets {self.start_offset} to {self.end_offset} (exclusive){known}{shutdown}"
        lines = [first, *map(str, self.actions)]
        if self.quarantine is not None:
            bad = self.quarantine
            lines.append(
                f"{bad.path}: quarantined from offset {bad.first_bad_offset} (position {bad.position}) until the log "
                f"reaches {bad.durable_end_offset} again: {bad.reason}"
            )
        return tuple(lines)
