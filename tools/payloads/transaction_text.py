# SPDX-License-Identifier: Apache-2.0
"""Kafka's words for records of ``__transaction_state`` up to 4.0; later releases print JSON.

Source: TransactionLog#formatRecordKeyAndValue.
"""

import struct
from collections.abc import Iterable
from typing import Final

from raftlog.records.messages.coordinator import CoordinatorRecord
from raftlog.records.messages.java_text import displayed

TRANSACTION_STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""Kafka's names for the states of a transaction, by their numbers. Source: TransactionState."""
_LEAST_BUCKETS: Final = 16
_LARGEST_SMALL_SET: Final = 4
_UTF_16_UNIT: Final = struct.Struct(">H")


def transaction_key_text(decoded: CoordinatorRecord) -> str:
    """Describe a record's key."""
    return f"transaction_metadata::transactionalId={displayed(decoded.key['transactionalId'])}"


def transaction_value_text(decoded: CoordinatorRecord) -> str:
    """Describe a record's value."""
    value = decoded.value
    if value is None:
        return "<DELETE>"
    status = value["transactionStatus"]
    state = TRANSACTION_STATES[status] if 0 <= status < len(TRANSACTION_STATES) else f"unknown({status})"
    # Kafka ignores the partitions of an empty transaction.
    topics = [] if state == "Empty" else value["transactionPartitions"] or []
    partitions = in_set_order((displayed(topic["topic"]), topic["partitionIds"]) for topic in topics)
    return (
        f"producerId:{value['producerId']},producerEpoch:{value['producerEpoch']},state={state},"
        f"partitions=[{','.join(partitions)}],txnLastUpdateTimestamp={value['transactionLastUpdateTimestampMs']},"
        f"txnTimeoutMs={value['transactionTimeoutMs']}"
    )


def in_set_order(topics: Iterable[tuple[str, Iterable[int]]]) -> list[str]:
    """Return the names of some topics' partitions, in the order of the set in which Kafka collects them.

    That set is Scala's mutable HashSet: ordered by bucket, and by hash inside a bucket. Kafka adds one topic at a time,
    and the set reserves room for each. Beyond that it doubles only while it adds a set of at most four, which it does
    one element at a time.
    """
    buckets = _LEAST_BUCKETS
    hashes: dict[tuple[str, int], int] = {}
    for topic, ids in topics:
        added, topic_hash = dict.fromkeys(ids), _string_hash(topic)
        buckets = max(buckets, 1 << ((len(added) + 1) * 4 // 3 - 1).bit_length())
        for partition in added:
            if len(added) <= _LARGEST_SMALL_SET and len(hashes) + 1 >= buckets * 3 // 4:
                buckets *= 2
            hashes[topic, partition] = _spread(31 * (31 + partition) + topic_hash)
    ordered = sorted(hashes, key=lambda each: (hashes[each] & buckets - 1, hashes[each]))
    return [f"{topic}-{partition}" for topic, partition in ordered]


def _string_hash(text: str) -> int:
    """Compute Java's ``String.hashCode``, without wrapping it."""
    total = 0
    for (unit,) in _UTF_16_UNIT.iter_unpack(text.encode("utf-16-be")):
        total = (31 * total + unit) & 0xFFFFFFFF
    return total


def _spread(number: int) -> int:
    """Mix the upper half of a hash into the lower one, and convert it to a signed 32-bit number."""
    number &= 0xFFFFFFFF
    number ^= number >> 16
    return number - (1 << 32) if number >> 31 else number
