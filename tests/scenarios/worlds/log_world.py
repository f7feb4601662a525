# SPDX-License-Identifier: Apache-2.0
"""The world of a replicated log: each command is a method of ``ReplicatedLog``, and prints the state after it."""

from collections.abc import Callable
from functools import partial
from typing import ClassVar, Final

from raftlog.log.replicated_log import Isolation, ReplicatedLog
from raftlog.log.retention import Retention
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import read_batch
from raftlog.testing.contracts.log_harness import KEEP_ALL, LogHarness
from tests.contracts.log_harnesses import FileHarness, FileHarnessInParts, MemoryHarness, MemoryHarnessInParts
from tests.offset_notation import offset_and_epoch, offset_and_epoch_text
from tests.scenarios.world import ArgumentTypes, World, command
from tests.scenarios.worlds.batch_notation import batch_bytes, batch_text, offsets_text

SMALL_SEGMENT_BYTES: Final = 300
"""Three batches or so."""


class LogWorld(World):
    """One log.

    Args:
        harness: of the log.
    """

    argument_types: ClassVar[ArgumentTypes] = {OffsetAndEpoch: offset_and_epoch}

    def __init__(self, harness: LogHarness) -> None:
        self.harness = harness

    @property
    def log(self) -> ReplicatedLog:
        """The log; another object after a crash, perhaps."""
        return self.harness.log

    def close(self) -> None:
        """Close the log."""
        self.log.close()

    @command
    def state(self) -> str:
        """Print where the log starts and ends, how far it is committed, and its epoch."""
        log = self.log
        return (
            f"log: start {log.start_offset} end {log.end_offset.offset} high-watermark {log.high_watermark.offset} "
            f"epoch {log.last_fetched_epoch}"
        )

    @command
    def append(self, *batches: str, epoch: int) -> str:
        """Append batches as the leader of an epoch."""
        info = self.log.append_as_leader(b"".join(batch_bytes(each, epoch) for each in batches), epoch)
        return f"appended {offsets_text(*info)}\n{self.state()}"

    @command
    def append_as_follower(self, *batches: str, epoch: int) -> str:
        """Append batches that the leader of an epoch has sent."""
        info = self.log.append_as_follower(b"".join(batch_bytes(each, epoch) for each in batches), epoch)
        done = "appended nothing" if info is None else f"appended {offsets_text(*info)}"
        return f"{done}\n{self.state()}"

    @command
    def flush(self) -> str:
        """Make all batches durable, and print up to where, exclusive."""
        self.log.flush()
        return f"flushed {self.log.flushed_offset}"

    @command
    def high_watermark(self, offset: int) -> str:
        """Tell the log how far it is committed."""
        self.log.update_high_watermark(offset)
        return self.state()

    @command
    def enter_epoch(self, epoch: int) -> str:
        """Enter an epoch as its leader."""
        self.log.initialize_leader_epoch(epoch)
        return self.state()

    @command
    def truncate(self, offset: int) -> str:
        """Truncate the log to an offset."""
        self.log.truncate_to(offset)
        return self.state()

    @command
    def truncate_to_end_offset(self, end_offset: OffsetAndEpoch) -> str:
        """Truncate the log as a follower whose leader answered that it diverges."""
        end = self.log.truncate_to_end_offset(end_offset)
        return f"truncated to {end}\n{self.state()}"

    @command
    def batches(self, *, isolation: str = "uncommitted") -> str:
        """Print all batches that a reader sees."""
        found = [batch_text(batch) for batch in self.log.batches(isolation=Isolation(isolation))]
        return f"batches: {' '.join(found) or 'none'}"

    @command
    def read(self, offset: int, *, isolation: str = "uncommitted") -> str:
        """Print the first batch that a read from an offset returns."""
        records = self.log.read(offset, Isolation(isolation), max_size_bytes=0).records
        return f"read: {batch_text(read_batch(records)[0]) if records else 'nothing'}"

    @command
    def epochs(self) -> str:
        """Print where each epoch starts."""
        found = [f"{entry.epoch} from {entry.start_offset}" for entry in self.log.state.epochs.entries]
        return f"epochs: {', '.join(found) or 'none'}"

    @command
    def epoch_at(self, offset: int) -> str:
        """Print the epoch of the record at an offset."""
        return f"epoch: {self.log.epoch_at_offset(offset)}"

    @command
    def end_of_epoch(self, epoch: int) -> str:
        """Print where an epoch, or the last one before it, ends."""
        end = self.log.end_offset_for_epoch(epoch)
        return f"ends at {offset_and_epoch_text(end)}"

    @command
    def validate(self, position: OffsetAndEpoch) -> str:
        """Print the answer of a leader with this log to a follower, given its fetch offset and last epoch."""
        verdict = self.log.validate_offset_and_epoch(position.offset, position.epoch)
        return f"{verdict.kind.value}: {offset_and_epoch_text(verdict.offset_and_epoch)}"

    @command
    def crash(self) -> str:
        """Lose what is not durable, and open the log again."""
        self.harness.crash()
        return self.state()

    @command
    def reopen(self) -> str:
        """Close the log, and open it again."""
        self.harness.reopen()
        return self.state()


LOG_FORMS: Final[dict[str, Callable[[Retention], LogHarness]]] = {
    "memory": MemoryHarness,
    "file": partial(FileHarness, always_loses=True),
    "file-of-small-segments": partial(FileHarness, segment_size_bytes=SMALL_SEGMENT_BYTES, always_loses=True),
    "memory-in-parts": MemoryHarnessInParts,
    "file-in-parts": partial(FileHarnessInParts, segment_size_bytes=SMALL_SEGMENT_BYTES, always_loses=True),
}

"""An empty log of each form. A crash takes all that was not flushed."""

LOG_WORLDS: Final[dict[str, Callable[[], World]]] = {
    name: lambda make=make: LogWorld(make(KEEP_ALL))  # type: ignore[misc]
    for name, make in LOG_FORMS.items()
}
"""A world for each form of log; a scenario prints the same in all of them."""
