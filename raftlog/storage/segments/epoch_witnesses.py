# SPDX-License-Identifier: Apache-2.0
"""Checks the epoch in a batch's header, which no CRC covers, against the lists of epochs in two other files.

An epoch is stored in ``raftlog-recovery-point`` and in ``leader-epoch-checkpoint`` before its first batch is written.
"""

from collections.abc import Iterable

from raftlog.log.epochs import LeaderEpochs


class EpochWitnesses:
    """Lists of epochs that were stored beside a log.

    Args:
        witnesses: all lists that can be read. A batch's epoch is doubted only if at least two of them have an epoch for
            its offset, and all of those contradict it.
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
        known = [each.epoch_for_offset(base_offset) for each in self._witnesses]
        said = [each for each in known if each is not None]
        return len(said) > 1 and epoch not in said
