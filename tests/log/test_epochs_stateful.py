# SPDX-License-Identifier: Apache-2.0
"""Leader epochs against a list that is searched from end to end, in the words of Kafka's class."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from raftlog.log.epochs import LeaderEpochs
from raftlog.offsets import EpochEntry, OffsetAndEpoch

epochs = st.integers(0, 12)
offsets = st.integers(0, 40)


class EpochsAgainstAList(RuleBasedStateMachine):
    """After any operations epochs answer as a list does, and earlier values stay as they were."""

    def __init__(self) -> None:
        super().__init__()
        self.epochs = LeaderEpochs()
        self.model: list[EpochEntry] = []

    def _expect(self, changed: LeaderEpochs, model: list[EpochEntry]) -> None:
        assert (changed is self.epochs) == (model == self.model)
        assert list(self.epochs.entries) == self.model
        self.epochs, self.model = changed, model

    @rule(epoch=epochs, start_offset=offsets)
    def assign(self, epoch: int, start_offset: int) -> None:
        """Let an epoch start at an offset."""
        model = list(self.model)
        if not (model and model[-1].epoch == epoch and model[-1].start_offset <= start_offset):
            while model and (model[-1].epoch >= epoch or model[-1].start_offset >= start_offset):
                model.pop()
            model.append(EpochEntry(epoch, start_offset))
        self._expect(self.epochs.with_epoch(epoch, start_offset), model)

    @rule(end_offset=offsets)
    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that start at or above an offset."""
        kept = [entry for entry in self.model if entry.start_offset < end_offset]
        self._expect(self.epochs.truncated_from_end(end_offset), kept)

    @rule(start_offset=offsets)
    def truncate_from_start(self, start_offset: int) -> None:
        """Forget what lies below an offset."""
        dropped = [entry for entry in self.model if entry.start_offset <= start_offset]
        kept = [entry for entry in self.model if entry.start_offset > start_offset]
        if dropped:
            kept.insert(0, EpochEntry(dropped[-1].epoch, start_offset))
        self._expect(self.epochs.truncated_from_start(start_offset), kept)

    @rule()
    def reopen(self) -> None:
        """Make a value of what was written down."""
        self.epochs = LeaderEpochs(self.epochs.entries)

    @invariant()
    def says_the_same(self) -> None:
        """Of every epoch and every offset."""
        assert list(self.epochs.entries) == self.model
        assert self.epochs.latest_epoch == (self.model[-1].epoch if self.model else None)
        assert self.epochs.previous_epoch() == (self.model[-2].epoch if len(self.model) > 1 else None)
        assert self.epochs.earliest_entry == (self.model[0] if self.model else None)
        for epoch in range(-1, 14):
            assert self.epochs.end_offset_for(epoch, 50) == self._end_offset_for(epoch)
            above = [entry.epoch for entry in self.model if entry.epoch > epoch]
            below = [entry.epoch for entry in self.model if entry.epoch < epoch]
            assert self.epochs.next_epoch(epoch) == (above[0] if above else None)
            assert self.epochs.previous_epoch(epoch) == (below[-1] if below else None)
        for offset in range(42):
            at_or_below = [entry.epoch for entry in self.model if entry.start_offset <= offset]
            assert self.epochs.epoch_for_offset(offset) == (at_or_below[-1] if at_or_below else None)

    def _end_offset_for(self, epoch: int) -> OffsetAndEpoch | None:
        higher = [entry for entry in self.model if entry.epoch > epoch]
        floor = [entry for entry in self.model if entry.epoch <= epoch]
        if epoch < 0 or not self.model:
            return None
        if self.model[-1].epoch == epoch:
            return OffsetAndEpoch(50, epoch)
        if not higher:
            return None
        return OffsetAndEpoch(higher[0].start_offset, floor[-1].epoch if floor else epoch)


TestEpochsAgainstAList = EpochsAgainstAList.TestCase
TestEpochsAgainstAList.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
