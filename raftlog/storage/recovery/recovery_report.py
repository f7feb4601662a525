# SPDX-License-Identifier: Apache-2.0
"""What opening a log directory has found and done, as a value that can be printed."""

import enum

import attrs

from raftlog.log.replicated_log import Quarantine


class ActionKind(enum.Enum):
    """What was done to a file; the value is the word for it."""

    CUT = "cut"
    """A torn tail, which nobody was told of, is gone from the log; ``copy`` has it."""
    LOST = "lost"
    """Records that were there are rotten or gone, and a newer snapshot stands for them; what is left is kept."""
    REBUILT = "rebuilt"
    """It follows from the log, and was not what it must be."""
    REMOVED = "removed"
    """It was on its way out, half written, or of a segment that is gone."""
    RENAMED = "renamed"
    """It was on its way in."""
    SET_ASIDE = "set aside"
    """It is damaged, and kept under a name that nothing reads."""
    SUPERSEDED = "superseded"
    """It is sound, a newer snapshot takes its place, and it is kept under a name that nothing reads."""
    TAKEN = "taken"
    """It is somebody else's later write, and counts."""
    IGNORED = "ignored"
    """It is damaged, and the log can do without it."""


@attrs.frozen
class RecoveryAction:
    """One thing that was done.

    Attributes:
        kind: what.
        path: to which file.
        detail: why, in one clause.
        copy: the path at which the bytes are kept; None where none were taken away.
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
    """What a start has found and done.

    Attributes:
        start_offset: of the log, inclusive.
        end_offset: of the log, exclusive.
        durable_end_offset: so much was known to have been durable, exclusive, before anything was read; None where
            nothing said so: Kafka wrote the directory, or it is new.
        was_closed: whether the log had been closed in order; None where nothing says so.
        actions: in the order in which they were taken.
        quarantine: what is damaged below the durable point, and was left as it is.
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
