# SPDX-License-Identifier: Apache-2.0
"""Messages by name: every message at every version, versions and levels, and what is refused."""

import doctest
import errno
import math
import os
import pkgutil
import struct
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raftlog.records.messages.schema
from raftlog.errors import (
    DecodeError,
    InvalidRecordError,
    StorageError,
    TooManyOpenFilesError,
    TruncatedBatchError,
    UnsupportedVersionError,
)
from raftlog.records.messages import primitives
from raftlog.records.messages.releases import LEVELS
from raftlog.records.messages.schema import FILES, UNKNOWN_TAGS, Message, MessageType, message_type, message_types
from raftlog.records.messages.schema_text import Field, Struct
from tests.records.outcome import outcome
from tests.records.schema_strategies import ALL_TYPES, ALL_VERSIONS, messages

every_version = pytest.mark.parametrize(
    ("kind", "version"), ALL_VERSIONS, ids=[f"{kind.name}-{version}" for kind, version in ALL_VERSIONS]
)
versions = st.sampled_from(ALL_VERSIONS)
quick = settings(max_examples=3, deadline=None)


@pytest.mark.parametrize("items", [4, 5, 6])
def test_a_message_has_so_many_items_and_no_more(items: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of structs, of ids, nested ones, and unknown tagged fields count together, per message."""
    monkeypatch.setattr(primitives, "MAX_MESSAGE_ITEMS", 5)
    endpoints = [{"name": f"n{index}", "host": "h", "port": 1} for index in range(items - 2)]
    kinds: list[tuple[str, Message]] = [
        ("VotersRecord", {"voters": [{"voterId": 1, "endpoints": endpoints}, {"voterId": 2}]}),
        ("PartitionRecord", {"replicas": list(range(items - 2)), "isr": [1, 2]}),
        ("PartitionRecord", {"replicas": [1, 2], UNKNOWN_TAGS: {100 + index: b"" for index in range(items - 2)}}),
    ]
    for name, message in kinds:
        kind = message_type(name)
        data = kind.write(message, version=0)
        for _ in range(2):
            if items <= 5:
                assert kind.write(kind.decode(data, version=0), version=0) == data
            else:
                with pytest.raises(InvalidRecordError, match="6 items or more, and at most 5 are allowed"):
                    kind.decode(data, version=0)


@every_version
@quick
@given(data=st.data())
def test_every_message_survives_the_wire(kind: MessageType, version: int, data: st.DataObject) -> None:
    """Reading written bytes gives the message, and consumes exactly its bytes, at any position."""
    message = data.draw(messages(kind, version))
    written = kind.write(message, version=version)
    assert kind.decode(written, version=version) == message
    assert kind.read(memoryview(b"ab" + written + b"c"), 2, version=version) == (message, len(written) + 2)


@settings(max_examples=40, deadline=None)
@given(st.data(), versions)
def test_what_is_read_can_be_written(data: st.DataObject, chosen: tuple[MessageType, int]) -> None:
    """Mutated bytes give a typed error, or a message that is the same again after writing and reading."""
    read_mutated(data, chosen)


@pytest.mark.slow
@settings(max_examples=2_000, deadline=None)
@given(st.data(), versions)
def test_what_is_read_can_be_written_at_length(data: st.DataObject, chosen: tuple[MessageType, int]) -> None:
    """Mutated bytes give a typed error, or a message that is the same again after writing and reading."""
    read_mutated(data, chosen)


def read_mutated(data: st.DataObject, chosen: tuple[MessageType, int]) -> None:
    """Write a message, change some bytes, and read what is there then."""
    kind, version = chosen
    written = bytearray(kind.write(data.draw(messages(kind, version)), version=version))
    for position in data.draw(st.lists(st.integers(0, max(0, len(written) - 1)), max_size=3)):
        written[position:] = data.draw(st.binary(max_size=2)) + written[position + data.draw(st.integers(0, 2)) :]
    result = outcome(lambda: kind.read(bytes(written), version=version))
    if isinstance(result, DecodeError):
        assert isinstance(result, InvalidRecordError | TruncatedBatchError)
        assert result.rule == "message-field"
        assert result.position is not None
        return
    message, end = result
    assert end <= len(written)
    kind.to_json(message, version=version)
    again = kind.write(message, version=version)
    assert kind.write(kind.decode(again, version=version), version=version) == again


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=60), st.sampled_from(ALL_TYPES), st.integers(-1, 20), st.sampled_from(LEVELS))
def test_any_bytes_give_a_message_or_a_typed_error(data: bytes, kind: MessageType, version: int, level: str) -> None:
    """Reading as any level, any version by the nearest, raises nothing but a DecodeError."""
    result = outcome(lambda: kind.reader(version, level, nearest=True)(data, 0))
    if not isinstance(result, DecodeError):
        assert result[1] <= len(data)
        kind.to_object(result[0], version=version)


@settings(max_examples=50, deadline=None)
@given(st.data(), versions)
def test_no_message_ends_early(data: st.DataObject, chosen: tuple[MessageType, int]) -> None:
    """A message whose last byte is missing does not decode."""
    kind, version = chosen
    written = kind.write(data.draw(messages(kind, version)), version=version)
    if written:
        with pytest.raises((InvalidRecordError, TruncatedBatchError)):
            kind.decode(written[:-1], version=version)


@settings(max_examples=50, deadline=None)
@given(st.data(), versions)
def test_left_out_fields_are_at_their_defaults(data: st.DataObject, chosen: tuple[MessageType, int]) -> None:
    """Writing a message without the fields that are at their defaults gives the same bytes."""
    kind, version = chosen
    message = data.draw(messages(kind, version))
    default = kind.default()
    short = {name: value for name, value in message.items() if name not in default or value != default[name]}
    assert kind.write(short, version=version) == kind.write(message, version=version)


@settings(max_examples=50, deadline=None)
@given(st.data(), versions, st.sampled_from(LEVELS))
def test_older_levels_keep_what_they_do_not_know(
    data: st.DataObject, chosen: tuple[MessageType, int], level: str
) -> None:
    """Read as an older level, newer tagged fields are unknown ones, and writing gives the same bytes."""
    kind, version = chosen
    written = kind.write(data.draw(messages(kind, version)), version=version)
    message = outcome(lambda: kind.decode(written, version=version, level=level))
    if isinstance(message, DecodeError):
        assert isinstance(message, UnsupportedVersionError)
        assert version not in kind.schema.versions_at(level)
        return
    assert kind.write(message, version=version) == written


@settings(max_examples=50, deadline=None)
@given(st.data(), versions, versions)
def test_a_version_that_lacks_a_field_refuses_its_value(
    data: st.DataObject, chosen: tuple[MessageType, int], other: tuple[MessageType, int]
) -> None:
    """A message of one version can be written in another, or some field there is not at its default."""
    kind, version = chosen
    message = data.draw(messages(kind, version, plain=True))
    target = kind.versions.nearest(other[1])
    written = outcome(lambda: kind.write(message, version=target))
    if isinstance(written, DecodeError):
        # The version lacks a field, or does not allow a null.
        assert isinstance(written, UnsupportedVersionError) or "not None" in written.reason
        assert target != version
        return
    read = kind.decode(written, version=target)
    for field in kind.schema.struct.fields:
        if target in field.versions or not field.ignorable:
            assert _without_ignorable(field, read[field.name]) == _without_ignorable(field, message[field.name])


def _without_ignorable(field: Field, value: Any) -> Any:
    """Drop the nested fields that a version may drop."""
    if field.struct is None or value is None:
        return value
    return [_kept(field.struct, item) for item in value] if field.is_array else _kept(field.struct, value)


def _kept(layout: Struct, value: dict[str, Any]) -> dict[str, Any]:
    return {each.name: _without_ignorable(each, value[each.name]) for each in layout.fields if not each.ignorable}


def test_the_docstring_is_true() -> None:
    """The examples in the module's docstring work."""
    assert doctest.testmod(raftlog.records.messages.schema).failed == 0


def test_all_texts_are_there() -> None:
    """Every schema text has messages, whose names are their own, and every default can be written."""
    assert len(ALL_TYPES) == sum(len(message_types(file)) for file in FILES) == len({each.name for each in ALL_TYPES})
    for kind, version in ALL_VERSIONS:
        assert kind.decode(kind.write({}, version=version), version=version) == kind.default()


def test_levels_know_fewer_versions() -> None:
    """Two metadata records have a version that only 4.3 brought; no other message differs."""
    fewer = {
        (kind.name, level): kind.schema.versions_at(level).highest
        for kind in ALL_TYPES
        for level in LEVELS
        if kind.schema.versions_at(level) != kind.versions
    }
    old = ("3.9", "4.0", "4.1", "4.2")
    broker = {("RegisterBrokerRecord", level): 3 for level in old}
    assert fewer == broker | {("BrokerRegistrationChangeRecord", level): 2 for level in old}


def test_a_newer_version_reads_until_a_nested_struct_comes() -> None:
    """Read by the nearest layout, a version too new gives top-level fields; an item of a nested struct is refused."""
    vote = message_type("VoteResponse")
    flat = vote.write({"errorCode": 3}, version=2)
    read = vote.reader(9, nearest=True)
    assert read(flat, 0)[0]["errorCode"] == 3
    with pytest.raises(UnsupportedVersionError) as caught:
        read(vote.write({"topics": [{"topicName": "t"}]}, version=2), 0)
    assert caught.value.reason == "Can't read version 9 of TopicData"
    assert vote.reader(-5, nearest=True)(flat, 0)[0]["errorCode"] == 3


def test_unknown_versions_and_names_are_refused() -> None:
    """A version above the highest, an unknown message and an unknown field are refused."""
    vote = message_type("VoteRequest")
    with pytest.raises(UnsupportedVersionError):
        vote.read(b"\0\0\0", version=3)
    with pytest.raises(UnsupportedVersionError):
        vote.write({}, version=-1)
    with pytest.raises(LookupError):
        message_type("VoteForMe")
    with pytest.raises(InvalidRecordError, match="no field"):
        vote.write({"cluster_id": "x"}, version=2)
    assert vote.api_key == 52
    assert "VoteRequest 0-2" in repr(vote)


@pytest.mark.parametrize(
    "message",
    [
        {"topics": "t"},
        {"topics": [None]},
        {"topics": [{"topicName": 5}]},
        {"topics": [{"topicName": "\ud800"}]},
        {"topics": [{"topicName": "x" * 0x8000}]},
        {"topics": [{"partitions": [{"partitionIndex": 1 << 31}]}]},
        {"topics": [{"partitions": [{"partitionIndex": 1.0}]}]},
        {"topics": [{"partitions": [{"replicaDirectoryId": b"x" * 16}]}]},
        {"topics": [{"partitions": [{"preVote": 1}]}]},
        {"topics": None},
        {UNKNOWN_TAGS: {-1: b""}},
        {UNKNOWN_TAGS: {1: "x"}},
        "vote",
    ],
)
def test_wrong_values_are_refused(message: Any) -> None:
    """A value that does not fit its field is an InvalidRecordError."""
    with pytest.raises(InvalidRecordError):
        message_type("VoteRequest").write(message, version=2)


def test_a_value_that_a_version_lacks_is_refused_unless_ignorable() -> None:
    """A pre-vote cannot be written below version 2; a voter id is dropped below version 1."""
    vote = message_type("VoteRequest")
    pre_vote = {"topics": [{"partitions": [{"preVote": True}]}]}
    with pytest.raises(UnsupportedVersionError, match="preVote"):
        vote.write(pre_vote, version=1)
    assert vote.write({"voterId": 5}, version=0) == vote.write({}, version=0)
    begin = message_type("BeginQuorumEpochRequest")
    with pytest.raises(UnsupportedVersionError):
        begin.write({UNKNOWN_TAGS: {7: b"x"}}, version=0)


def test_a_tag_cannot_be_known_and_unknown() -> None:
    """Of a tag that is also an unknown one, only one of both may have a value."""
    vote = message_type("VoteResponse")
    kept = {UNKNOWN_TAGS: {0: b"\x01"}}
    assert vote.write(kept, version=2).endswith(b"\x01\x00\x01\x01")
    with pytest.raises(InvalidRecordError):
        vote.write({**kept, "nodeEndpoints": [{}]}, version=2)


def test_a_tag_of_other_versions_is_refused_once_it_is_known() -> None:
    """A tagged field that another version has is an error, as in Kafka; a release that does not know it skips it."""
    partition = message_type("PartitionRecord")
    elr = partition.write({UNKNOWN_TAGS: {1: b"\x01"}}, version=1)
    with pytest.raises(InvalidRecordError, match="Tag 1 is not valid for version 1"):
        partition.decode(elr, version=1)
    change = message_type("BrokerRegistrationChangeRecord")
    cordoned = change.write({UNKNOWN_TAGS: {3: b"\x01"}}, version=2)
    assert change.decode(cordoned, version=2, level="4.2")[UNKNOWN_TAGS] == {3: b"\x01"}
    with pytest.raises(InvalidRecordError, match="Tag 3 is not valid for version 2"):
        change.decode(cordoned, version=2, level="4.3")


def test_counts_and_lengths_are_checked_before_they_are_used() -> None:
    """A count above the bytes that are left is refused at once, and so is a string above 32767 bytes."""
    vote = message_type("VoteResponse")
    with pytest.raises(InvalidRecordError, match="collection of size 268435454, but there are only 2 bytes"):
        vote.read(b"\0\0\xff\xff\xff\x7f\0\0", version=0)
    client = message_type("ApiVersionsRequest")
    with pytest.raises(InvalidRecordError, match="string field clientSoftwareName had invalid length 32768"):
        client.read(b"\x81\x80\x02" + bytes(40000), version=3)
    with pytest.raises(InvalidRecordError, match="non-nullable field clientSoftwareName was serialized as null"):
        client.read(b"\0\0\0", version=3)
    with pytest.raises(InvalidRecordError, match="1 bytes are left"):
        client.decode(b"\x01\x01\0\0", version=3)


def test_nan_keeps_its_bits() -> None:
    """A NaN comes back with the bits that it was written with, and is a string in JSON."""
    quota = message_type("ClientQuotaRecord")
    written = quota.write({"value": math.nan}, version=0)
    message = quota.decode(written, version=0)
    assert quota.write(message, version=0) == written
    assert struct.pack(">d", message["value"]) == struct.pack(">d", math.nan)
    assert '"value":"NaN"' in quota.to_json(message, version=0)


def test_messages_share_nothing() -> None:
    """Changing a message that was read, or a default, changes no other."""
    kind = message_type("PartitionRecord")
    data = kind.write({}, version=0)
    first = kind.decode(data, version=0)
    first["replicas"].append(1)
    first["directories"].append(uuid.UUID(int=1))
    kind.default()["isr"].append(1)
    assert kind.decode(data, version=0) == kind.default()


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EMFILE, TooManyOpenFilesError),
        (errno.ENFILE, TooManyOpenFilesError),
        (errno.EIO, StorageError),
        (errno.ENOENT, StorageError),
    ],
)
def test_a_text_that_cannot_be_opened_is_an_error(
    number: int, kind: type[StorageError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the file; a lack of descriptors is not permanent, and the next call reads it."""

    def fail(*_: object) -> bytes:
        raise OSError(number, os.strerror(number))

    read = pkgutil.get_data
    monkeypatch.setattr(pkgutil, "get_data", fail)
    message_types.cache_clear()
    with pytest.raises(StorageError, match=f"{FILES[0]}.txt: open failed: {os.strerror(number)}") as raised:
        message_types(FILES[0])
    assert type(raised.value) is kind
    monkeypatch.setattr(pkgutil, "get_data", read)
    assert message_types(FILES[0])
