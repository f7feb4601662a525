# SPDX-License-Identifier: Apache-2.0
"""The words of Kafka 3.9 and 4.0 for transactions; whole outputs are compared in ``test_dialect_goldens.py``."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.messages.coordinator import TRANSACTION_STATE, CoordinatorRecord, read_coordinator_record
from raftlog.records.messages.schema import Message, message_type
from raftlog.tools.payloads.transaction_text import in_set_order, transaction_key_text, transaction_value_text

Topics = list[tuple[str, list[int]]]


def record(value: Message | None) -> CoordinatorRecord:
    """Make a record of a transactional id's state."""
    data = None if value is None else b"\0\1" + message_type("TransactionLogValue").write(value, version=1)
    read = read_coordinator_record(TRANSACTION_STATE, b"\0\0\0\2tx", data)
    assert isinstance(read, CoordinatorRecord)
    return read


@pytest.mark.parametrize(
    ("topics", "printed"),
    [
        ([("t", [1, 0]), ("b", [1, 0])], "b-1,b-0,t-1,t-0"),
        ([("t", [3, 3, 1]), ("t", [1, 2])], "t-3,t-2,t-1"),
        ([(name, [0]) for name in "abcdefghijkl"], "a-0,b-0,c-0,d-0,e-0,f-0,g-0,h-0,i-0,j-0,k-0,l-0"),
        ([("BBBB", [1, 0]), ("AaAa", [0, 1]), ("AaBB", [1])], "BBBB-0,AaAa-0,BBBB-1,AaAa-1,AaBB-1"),
        (
            [("тема", [-1, 2**31 - 1]), ("\U0001f600", [5, -(2**31)])],
            "\U0001f600-5,тема-2147483647,тема--1,\U0001f600--2147483648",
        ),
        (
            [("t", list(range(12))), ("u", list(range(12)))],
            "t-11,t-10,u-11,t-9,u-10,t-8,u-9,t-7,u-8,t-6,u-7,t-5,u-6,t-4,u-5,t-3,u-4,t-2,u-3,t-1,u-2,t-0,u-1,u-0",
        ),
    ],
)
def test_partitions_are_in_the_order_of_kafkas_set(topics: Topics, printed: str) -> None:
    """The order is the one in which 3.9 and 4.0 printed the same partitions."""
    assert ",".join(in_set_order(topics)) == printed


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.text(max_size=3), st.lists(st.integers(-(2**31), 2**31 - 1), max_size=20)), max_size=8))
def test_each_partition_occurs_once(topics: Topics) -> None:
    """Of any topics, every partition is named, and none of them twice."""
    named = in_set_order(topics)
    assert len(named) == len(set(named))
    assert set(named) == {f"{topic}-{partition}" for topic, partitions in topics for partition in partitions}


def test_a_transaction_is_one_line() -> None:
    """The key is the id; the value has the state by name, or no more than <DELETE>."""
    topics = [{"topic": "t", "partitionIds": [0]}]
    value = {"producerId": 7, "producerEpoch": 2, "transactionTimeoutMs": 60, "transactionPartitions": topics}
    ongoing = record({**value, "transactionStatus": 1, "transactionLastUpdateTimestampMs": 5})
    assert transaction_key_text(ongoing) == "transaction_metadata::transactionalId=tx"
    assert transaction_value_text(ongoing) == (
        "producerId:7,producerEpoch:2,state=Ongoing,partitions=[t-0],txnLastUpdateTimestamp=5,txnTimeoutMs=60"
    )
    assert transaction_value_text(record(None)) == "<DELETE>"


def test_odd_states() -> None:
    """An empty transaction shows no partitions, even if it has some; a state that is not known is a number."""
    value = {"transactionPartitions": [{"topic": "t", "partitionIds": [0]}]}
    assert "state=Empty,partitions=[]," in transaction_value_text(record(value))
    assert "state=unknown(9),partitions=[]," in transaction_value_text(
        record({"transactionStatus": 9, "transactionPartitions": None})
    )
