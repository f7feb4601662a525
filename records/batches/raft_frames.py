# SPDX-License-Identifier: Apache-2.0
"""The length of records as Kafka's raft readers check it: against the size of the batch as it is stored.

A record of a compressed batch may well be longer than that, and nothing is wrong with the batch but that Kafka stops
there: a controller dies of it when it starts.

Source: RecordsIterator#readRecord ("Specified frame size, N, is larger than the entire size of the batch").
"""

from raftlog.errors import DecodeError
from raftlog.records import limits
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.compression import CompressionType
from raftlog.records.varint import read_varint


def too_long_for_raft(batch: RecordBatch, max_size: int = limits.MAX_DECOMPRESSED_SIZE) -> tuple[int, int] | None:
    """Return the first record that Kafka's raft readers stop at because of its length; None if there is none.

    The length is what a record's first varint says, in bytes, without that varint; one that is as long as the whole
    batch, header included, is taken. Records of a batch that is not compressed cannot be longer.

    Args:
        batch: its CRC is not checked, and its records need not be sound: behind one that has no length, none counts.
        max_size: the most bytes that the records may decompress to.

    Returns:
        How many records stand before it in the batch, and its length.

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
    """Say in one clause what Kafka's raft readers stop at in a batch because of its length; None if they do not.

    Raises:
        DecodeError, MissingExtraError: as for ``too_long_for_raft``.
    """
    found = too_long_for_raft(batch, max_size)
    if found is None:
        return None
    index, length = found
    record = f"the record at offset {batch.base_offset + index} is {length} bytes long"
    return f"{record}, the batch that it is compressed in {batch.size_bytes}"
