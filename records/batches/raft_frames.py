# SPDX-License-Identifier: Apache-2.0
"""Checks the lengths of records as Kafka's raft readers do: against the stored size of the batch.

A record of a sound compressed batch can be longer than the compressed batch. Kafka refuses it all the same, and a
controller with such a log crashes at startup.

Source: RecordsIterator#readRecord ("Specified frame size, N, is larger than the entire size of the batch").
"""

from raftlog.errors import DecodeError
from raftlog.records import limits
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.compression import CompressionType
from raftlog.records.varint import read_varint


def too_long_for_raft(batch: RecordBatch, max_size: int = limits.MAX_DECOMPRESSED_SIZE) -> tuple[int, int] | None:
    """Return the first record that Kafka's raft readers refuse because of its length; None if there is none.

    The length in question is that of a record without its leading length varint. It may be at most the size of the
    whole batch, header included. Only a record of a compressed batch can be longer.

    Args:
        batch: the CRC is not checked, and the records need not be sound; the search ends at a record without a readable
            length.
        max_size: the most bytes that the records may decompress to.

    Returns:
        The record's index in the batch, and its length in bytes.

    Raises:
        DecodeError: the batch does not decompress.
        MissingExtraError: the codec's package is not installed.
    """
    if batch.attributes & 7 == CompressionType.NONE:
        return None
    area = batch.record_area(max_size)
    if len(area) <= batch.size_bytes:
        return None
    at = 0
    for index in range(batch.record_count):
        if at >= len(area):
            return None
        try:
            length, start = read_varint(area, at)
        except DecodeError:
            return None
        if length > batch.size_bytes:
            return index, length
        if length <= 0:
            return None
        at = start + length
    return None


def length_problem(batch: RecordBatch, max_size: int = limits.MAX_DECOMPRESSED_SIZE) -> str | None:
    """Describe in one clause the record that Kafka's raft readers refuse because of its length; None if there is none.

    Raises:
        DecodeError, MissingExtraError: as for ``too_long_for_raft``.
    """
    found = too_long_for_raft(batch, max_size)
    if found is None:
        return None
    index, length = found
    record = f"the record at offset {batch.base_offset + index} is {length} bytes long"
    return f"{record}, the batch that it is compressed in {batch.size_bytes}"
