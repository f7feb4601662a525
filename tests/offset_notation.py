# SPDX-License-Identifier: Apache-2.0
"""An offset with an epoch as tests and scenarios write it: ``48@3`` is offset 48 of epoch 3.

As a snapshot id it is the end offset, exclusive, and the epoch of the record before it.
"""

from raftlog.offsets import OffsetAndEpoch


def offset_and_epoch(text: str) -> OffsetAndEpoch:
    """Read ``48@3``.

    Raises:
        ValueError: the text is something else.
    """
    offset, _, epoch = text.partition("@")
    return OffsetAndEpoch(int(offset), int(epoch))


def offset_and_epoch_text(value: OffsetAndEpoch) -> str:
    """Return what ``offset_and_epoch`` reads."""
    return f"{value.offset}@{value.epoch}"
