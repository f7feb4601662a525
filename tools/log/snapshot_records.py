# SPDX-License-Identifier: Apache-2.0
"""Converts a log's data records to those of a snapshot: resolves metadata transactions, and changes nothing else.

A controller exits if a snapshot has the begin and end records of a transaction.

Source: MetadataBatchLoader, MetadataDelta#replay.
"""

import functools
from collections.abc import Iterable, Iterator
from typing import Final

from raftlog.errors import DecodeError, InvalidSnapshotIdError
from raftlog.records.batches.open_batch import KeyedRecord
from raftlog.records.batches.record import Record
from raftlog.records.messages.metadata import read_metadata_record
from raftlog.records.messages.schema import message_types

_TRANSACTION_MESSAGES: Final = ("BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord")


def without_transactions(records: Iterable[Record]) -> Iterator[KeyedRecord]:
    """Yield records outside of transactions and of ended transactions, but not of aborted ones.

    The records of an open transaction are held in memory.

    Raises:
        InvalidSnapshotIdError: the records end inside a transaction.
    """
    pending: list[KeyedRecord] | None = None
    for record in records:
        kept = KeyedRecord(record.key, record.value, record.headers)
        match _transaction_message(record):
            case "BeginTransactionRecord":
                pending = []
            case "EndTransactionRecord":
                yield from pending or ()
                pending = None
            case "AbortTransactionRecord":
                pending = None
            case _ if pending is not None:
                pending.append(kept)
            case _:
                yield kept
    if pending is not None:
        raise InvalidSnapshotIdError("a metadata transaction is open there")


def _transaction_message(record: Record) -> str | None:
    """Return the name of the transaction message in a record, or None. One byte decides for most records."""
    value = record.value or b""
    if value[1:2] not in _api_keys():
        return None
    try:
        name = read_metadata_record(value).type.name
    except DecodeError:
        return None  # A value of another kind.
    return name if name in _TRANSACTION_MESSAGES else None


@functools.cache
def _api_keys() -> frozenset[bytes]:
    types = message_types("metadata-records")
    return frozenset(bytes([types[name].api_key or 0]) for name in _TRANSACTION_MESSAGES)
