# SPDX-License-Identifier: Apache-2.0
"""Slots of a flush mark as its module describes them, written without it."""

import struct

from raftlog.storage.recovery.recovery_point import FlushMark


def slot_of(mark: FlushMark) -> bytes:
    """Return the bytes of a slot."""
    numbers = mark.generation, mark.durable_end_offset
    return struct.pack(">8sqqqq", b"RLFLUSH\0", *numbers, *(~number for number in numbers))
