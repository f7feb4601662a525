# SPDX-License-Identifier: Apache-2.0
"""From a log's records to a snapshot's: transactions are resolved."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import InvalidSnapshotIdError
from raftlog.records.batches.batch import read_batch
from raftlog.records.batches.record import Record
from raftlog.records.messages.metadata import metadata_record, write_metadata_record
from raftlog.tools.log.snapshot_records import without_transactions
from tests.tools.made_logs import batch

BEGIN, END, ABORT = (
    write_metadata_record(metadata_record(f"{name}TransactionRecord", {}, version=0))
    for name in ("Begin", "End", "Abort")
)
LOOKALIKES = (BEGIN[:2], BEGIN + b"\0\0\0", b"\2" + BEGIN[1:], b"x" + BEGIN, b"")


def records_of(values: list[bytes]) -> list[Record]:
    """Records with these values."""
    return list(read_batch(batch(0, values))[0].records()) if values else []


plain = st.lists(st.binary(min_size=4, max_size=6).map(lambda value: b"v" + value) | st.sampled_from(LOOKALIKES))


@given(st.lists(st.tuples(st.sampled_from(["outside", "ended", "aborted"]), plain)))
def test_committed_records_stay_and_aborted_ones_go(parts: list[tuple[str, list[bytes]]]) -> None:
    """Records outside transactions, and those of transactions that ended, stay as they are, in order."""
    values: list[bytes] = []
    for kind, inside in parts:
        first, last = {"outside": ([], []), "ended": ([BEGIN], [END]), "aborted": ([BEGIN], [ABORT])}[kind]
        values += [*first, *inside, *last]
    kept = list(without_transactions(records_of(values)))
    assert [record.value for record in kept] == [
        value for kind, inside in parts if kind != "aborted" for value in inside
    ]
    assert all(record.key == b"k" for record in kept)


def test_an_open_transaction_is_refused() -> None:
    """Records that end inside a transaction make no snapshot."""
    with pytest.raises(InvalidSnapshotIdError, match="transaction is open"):
        list(without_transactions(records_of([b"before", BEGIN, b"inside"])))
