# SPDX-License-Identifier: Apache-2.0
"""Payloads of keys and values that differ between releases, or cannot be decoded."""

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.batches.record import Record
from raftlog.records.messages.coordinator import SHARE_GROUP_STATE, TRANSACTION_STATE
from raftlog.records.messages.metadata import MetadataRecord, write_metadata_record
from raftlog.records.messages.releases import DIALECTS, Release
from raftlog.records.messages.schema import NEWEST, MessageType
from raftlog.tools.payloads import message_payloads
from raftlog.tools.payloads.message_payloads import CoordinatorDecoder, MetadataDecoder, control_payload, control_text
from tests.records.schema_strategies import ALL_VERSIONS, messages

LEADER_CHANGE = b"\0\0\0\2"
METADATA_VERSIONS = [(kind, version) for kind, version in ALL_VERSIONS if kind.schema.kind == "metadata"]
UP_TO_4_0 = (DIALECTS["3.9"], DIALECTS["4.0"])


def record(key: bytes | None, value: bytes | None) -> Record:
    """Make a record at offset 5."""
    return Record(5, 0, key, value)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=str)
@pytest.mark.parametrize("value", [None, b"\0", b"\0\0\0\0\0\1\1\1\0"])
def test_a_leader_change_was_not_read_up_to_4_0(dialect: Release, value: bytes | None) -> None:
    """Up to 4.0 its type is shown, whatever the value; later its fields, or nothing if they cannot be decoded."""
    text = control_text(control_payload(record(LEADER_CHANGE, value)), dialect)

    if dialect in UP_TO_4_0:
        assert text == " controlType: LEADER_CHANGE(2)"
    elif value is None or len(value) == 1:
        assert text == ""
    else:
        assert text == ' LeaderChange: {"version":0,"leaderId":1,"voters":[],"grantingVoters":[]}'


@pytest.mark.parametrize(
    ("key", "name"), [(LEADER_CHANGE, "LEADER_CHANGE"), (b"\0\0\0\x63", "UNKNOWN(99)"), (b"\0\0\0", None), (None, None)]
)
def test_a_control_record_that_does_not_read_has_its_type(key: bytes | None, name: str | None) -> None:
    """The type is in the key: it is named though the value does not read, and there is a problem."""
    payload = control_payload(record(key, None))

    assert payload.type_name == name
    assert payload.problem is not None


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=str)
def test_other_keys_in_the_transaction_log(dialect: Release) -> None:
    """A key of another version is named by it up to 4.0, and skipped later; it is a problem in both."""
    payload = CoordinatorDecoder(TRANSACTION_STATE, dialect, dialect.name).decode(record(b"\xff\xff", b"x"))

    skipped = "Unknown record type -1 at offset 5, skipping."
    assert payload.key_text == ("unknown::version=-1" if dialect in UP_TO_4_0 else skipped)
    assert (payload.value_text, payload.problem is None) == (None, False)


@pytest.mark.parametrize(("dialect", "word"), [(DIALECTS["4.0"], "type"), (DIALECTS["4.1"], "version")])
def test_share_state_values_by_release(dialect: Release, word: str) -> None:
    """4.0 called the version of a value its type."""
    value = b"\0\0" + bytes(14 if dialect is DIALECTS["4.0"] else 16) + b"\1\0"
    payload = CoordinatorDecoder(SHARE_GROUP_STATE, dialect, dialect.name).decode(record(b"\0\1" + bytes(22), value))

    assert payload.value_text == (
        f'{{"{word}":"0","data":{{"snapshotEpoch":0,"leaderEpoch":0,"startOffset":0,"stateBatches":[]}}}}'
    )


@settings(deadline=None, max_examples=75)
@given(data=st.data(), chosen=st.sampled_from(METADATA_VERSIONS), redact=st.booleans())
def test_metadata_payloads_are_those_of_the_slow_way(
    data: st.DataObject, chosen: tuple[MessageType, int], redact: bool
) -> None:
    """Payloads, and texts of many values at a time, are what reading each record into a dict gives: secrets, too."""
    kind, version = chosen
    message = data.draw(messages(kind, version))
    if "name" in message:
        message["name"] = data.draw(st.sampled_from(["a", "ssl.key.password", "TOKEN", "to\u212aen"]))
    value = write_metadata_record(MetadataRecord(kind, version, message)) + data.draw(st.sampled_from([b"", b"", b"!"]))
    decoder = MetadataDecoder(NEWEST, redact)

    payload = decoder.decode(record(None, value))

    with mock.patch.object(message_payloads, "metadata_json", return_value=None):
        slow = decoder.decode(record(None, value))
    assert payload._replace(problem=None) == slow._replace(problem=None)
    assert str(payload.problem) == str(slow.problem)
    (text,) = decoder.value_texts([value])
    if text:
        assert text.decode() == payload.value_text
        assert not payload.has_secret
        assert payload.problem is None
    assert decoder.value_texts([None]) == [b""]
