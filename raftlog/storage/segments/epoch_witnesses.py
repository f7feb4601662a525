# SPDX-License-Identifier: Apache-2.0
"""Checks the epoch in a batch's header, which no CRC covers, against the lists of epochs in two other files.

An epoch is stored in ``raftlog-recovery-point`` and in ``leader-epoch-checkpoint`` before its first batch is written.
"""

from collections.abc import Iterable

from raftlog.log.epochs import LeaderEpochs


class EpochWitnesses:
    """Lists of epochs that were stored beside a log.

    Args:
        witnesses: all lists that can be read. A batch's epoch is doubted only if at least two of them know something
            of its offset, and all of those contradict it. Of offsets below its first entry, a list knows that no epoch
            there is later: they are below the log start.
    """

    def __init__(self, witnesses: Iterable[LeaderEpochs] = ()) -> None:
        self._witnesses = tuple(witnesses)
        self._starts = frozenset(entry.start_offset for each in self._witnesses for entry in each.entries)

    def contradict(self, base_offset: int, epoch: int, previous_epoch: int) -> bool:
        """Whether a batch cannot be of the epoch in its header.

        Args:
            base_offset: of the batch.
            epoch: in its header.
            previous_epoch: of the batch before it, which was not contradicted.
        """
        if epoch == previous_epoch and base_offset not in self._starts:
            return False
        said = [_agrees(each, base_offset, epoch) for each in self._witnesses if each.entries]
        return len(said) > 1 and not any(said)


def _agrees(witness: LeaderEpochs, base_offset: int, epoch: int) -> bool:
    known = witness.epoch_for_offset(base_offset)
    return epoch <= witness.entries[0].epoch if known is None else epoch == known
