# SPDX-License-Identifier: Apache-2.0
"""Sizes that readers and writers hold to, in bytes unless the name says otherwise."""

from typing import Final

LOG_OVERHEAD: Final = 12
"""Base offset and length: what a batch has before the bytes that its length counts."""

HEADER_UP_TO_MAGIC: Final = 17
"""Every message format has its magic in byte 16."""

BATCH_OVERHEAD: Final = 61
"""The header of a batch of magic 2."""

MIN_LEGACY_LENGTH: Final = 14
"""The smallest length field that any Kafka reader accepts: an empty record of magic 0."""

MIN_RECORD_SIZE: Final = 7
"""A record with its own length, null key, null value and no headers."""

MAX_BATCH_SIZE: Final = 8 * 1024 * 1024
"""What a raft leader writes at most in one batch (KafkaRaftClient.MAX_BATCH_SIZE_BYTES)."""

MAX_STORED_BATCH_SIZE: Final = 2**31 - 1
"""The largest batch that is read: Kafka's buffers, and our columns, count in 32 bits."""

MAX_DECOMPRESSED_SIZE: Final = 256 * 1024 * 1024
"""What the records of one batch may decompress to, unless the caller says otherwise."""

MAX_MESSAGE_ITEMS: Final = 200_000
"""The items of arrays, nested ones included, and the unknown tagged fields that are read of one message.

As objects they take up to a hundred times their bytes, and bytes that compress well are cheap: no message of Kafka
comes near it.
"""
