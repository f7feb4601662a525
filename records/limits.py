# SPDX-License-Identifier: Apache-2.0
"""Size limits of readers and writers, in bytes unless the name says otherwise."""

from typing import Final

LOG_OVERHEAD: Final = 12
"""Base offset and length: the bytes of a batch that its length field does not count."""

HEADER_UP_TO_MAGIC: Final = 17
"""Every message format has its magic in byte 16."""

BATCH_OVERHEAD: Final = 61
"""The header of a batch of magic 2."""

MIN_LEGACY_LENGTH: Final = 14
"""The smallest length field that any Kafka reader accepts: an empty record of magic 0."""

MIN_RECORD_SIZE: Final = 7
"""A record with its own length, null key, null value and no headers."""

MAX_BATCH_SIZE: Final = 8 * 1024 * 1024
"""The largest batch that a raft leader writes (KafkaRaftClient.MAX_BATCH_SIZE_BYTES)."""

MAX_STORED_BATCH_SIZE: Final = 2**31 - 1
"""The largest batch that can be read: Kafka's buffers and our columns use 32-bit positions."""

MAX_DECOMPRESSED_SIZE: Final = 256 * 1024 * 1024
"""The default limit for the decompressed records of one batch."""

MAX_MESSAGE_ITEMS: Final = 200_000
"""The most array items (nested ones included) and unknown tagged fields that are read from one message.

As Python objects they take up to a hundred times their stored size, so a small, well-compressed message could exhaust
memory. No message of Kafka comes near this limit.
"""
