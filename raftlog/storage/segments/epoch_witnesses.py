# SPDX-License-Identifier: Apache-2.0
"""What else than its header says which epoch a batch is of: no CRC covers that field.

An epoch is written down before its first batch, in ``raftlog-recovery-point`` and in ``leader-epoch-checkpoint``.
"""

from collections.abc import Iterable

from raftlog.log.epochs import LeaderEpochs


class EpochWitnesses:
    """Lists of epochs that were kept beside a log.

    Args:
        witnesses: all that there are, as far as they can be read. An epoch is doubted only where two of them at least
            have something to say of it, and all of those contradict it.
    """

    def __init__(self, witnesses: Iterable[LeaderEpochs] = ()) -> None:
        self._witnesses = tuple(witnesses)
        self._starts = frozenset(entry.start_offset for each in self._witnesses for entry in each.entries)

    def contradict(self, base_offset: int, epoch: int, previous_epoch: int) -> bool:
        """Whether a batch cannot be of the epoch that its header names.

        Args:
            base_offset: of the batch.
            epoch: that its header names.
            previous_epoch: of the batch before it, which was not contradicted.
        """
        if epoch == previous_epoch and base_offset not in self._starts:
            return False
        known = [each.epoch_for_offset(base_offset) for each in self._witnesses]
        said = [each for each in known if each is not None]
        return len(said) > 1 and epoch not in said
