# SPDX-License-Identifier: Apache-2.0
"""Payloads of MirrorMaker's records: by topic and by bytes, total over any bytes, without secrets."""

import json
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from raftlog.errors import InvalidRecordError
from raftlog.records.batches.record import Record
from raftlog.records.messages.mirrors.mirror_records import (
    HeartbeatKey,
    MirrorRecord,
    MirrorRecordType,
    MirrorTombstone,
    OffsetSyncKey,
    is_mirror_key,
    mirror_record_type,
    write_mirror_record,
)
from raftlog.records.messages.releases import NEWEST_DIALECT
from raftlog.tools.payloads.mirror_payloads import MirrorDecoder, topic_by_bytes
from raftlog.tools.payloads.mirror_topics import MirrorTopic
from raftlog.tools.payloads.payloads import Payload, PlainDecoder
from raftlog.tools.payloads.topic_decoders import topic_decoder
from tests.records.messages.mirrors.mirror_corpus import A, B, records_of
from tests.records.messages.mirrors.test_connect_records import CONNECTOR, KEY, SESSION_KEY, VALUE
from tests.records.messages.mirrors.test_mirror_records import EXAMPLES, RECORDS
from tests.tools.payloads.test_message_payloads import record

TOPICS: tuple[MirrorTopic, ...] = ("offset-syncs", "checkpoints", "heartbeats", "connect-offsets", "connect-configs")
OF_TYPE: dict[MirrorRecordType, MirrorTopic] = dict(zip(MirrorRecordType, TOPICS, strict=False))
SEEDS = [
    *(write_mirror_record(each) for each in EXAMPLES),
    (KEY, VALUE),
    (b"session-key", SESSION_KEY),
    (b"connector-a", CONNECTOR),
]
REAL = [
    (A, "mm2-offset-syncs.B.internal", "offset-syncs", 52),
    (B, "A.checkpoints.internal", "checkpoints", 4),
    (B, "A.heartbeats", "heartbeats", 40),
    (B, "heartbeats", "heartbeats", 41),
    (B, "mm2-offsets.A.internal", "connect-offsets", 12),
    (B, "mm2-configs.A.internal", "connect-configs", 10),
    (A, "mm2-configs.B.internal", "connect-configs", 8),
]


def check(payload: Payload) -> None:
    """A payload can be printed: texts are UTF-8, JSON is JSON, and a problem comes without either."""
    for text in (payload.key_text, payload.value_text):
        (text or "").encode()
    for data in (payload.key_json, payload.value_json):
        if data is not None:
            json.loads(data)
            data.encode()
            assert "\n" not in data
    assert payload.problem is None or (payload.key_json, payload.value_json, payload.type_name) == (None, None, None)


@given(RECORDS)
def test_any_record_by_its_bytes(made: MirrorRecord) -> None:
    """A record is of its own type by its bytes alone; a null value leaves it open for aliases of two letters."""
    kind = mirror_record_type(made)
    key, value = write_mirror_record(made)
    kinds = [each for each in MirrorRecordType if is_mirror_key(each, key)]
    assert kinds == [kind] or set(kinds) == {MirrorRecordType.OFFSET_SYNC, MirrorRecordType.HEARTBEAT}
    assume(kinds == [kind] or value is not None)
    assert topic_by_bytes(key, value) == OF_TYPE[kind]
    assert MirrorDecoder(None).decode(Record(5, 0, key, value)) == MirrorDecoder(OF_TYPE[kind]).decode(
        Record(5, 0, key, value)
    )


@pytest.mark.parametrize("source", ["", "a", "eu"])
def test_an_alias_of_two_letters(source: str) -> None:
    """The key of a flow to ``us`` is the key of an offset sync too; the size of the value tells."""
    flow, partition = HeartbeatKey(source, "us"), OffsetSyncKey(source, int.from_bytes(b"\0\2us"))
    key, _ = write_mirror_record(MirrorTombstone(flow))
    assert key == write_mirror_record(MirrorTombstone(partition))[0]
    assert topic_by_bytes(key, bytes(16)) == "offset-syncs"
    for size in (0, 10, 15, 17):
        assert topic_by_bytes(key, bytes(size)) == "heartbeats"
    assert topic_by_bytes(key, None) == "heartbeats"


@pytest.mark.parametrize(
    ("key", "topic"),
    [
        (KEY, "connect-offsets"),
        (b"session-key", "connect-configs"),
        (b"connector-a", "connect-configs"),
        (b"tasks-fencing-a", "connect-configs"),
        (b"connector", None),
        (b"orders", None),
        (b"", None),
        (b"\xff", None),
        (None, None),
    ],
)
def test_keys_of_connect_by_their_bytes(key: bytes | None, topic: MirrorTopic | None) -> None:
    """Connect's keys are told by how they begin; a key of nothing known is a problem of its own."""
    if topic is not None:
        assert topic_by_bytes(key, None) == topic
        return
    with pytest.raises(InvalidRecordError, match="no key of a record of MirrorMaker"):
        topic_by_bytes(key, None)
    payload = MirrorDecoder(None).decode(record(key, b"v"))
    assert payload.key_text == "Error at offset 5, skipping. no key of a record of MirrorMaker"
    assert payload.problem is not None


@given(st.sampled_from([None, *TOPICS]), st.none() | st.binary(max_size=30), st.none() | st.binary(max_size=40))
def test_any_bytes_have_a_payload(topic: MirrorTopic | None, key: bytes | None, value: bytes | None) -> None:
    """Any key and value decode, or are a problem; nothing is raised."""
    check(MirrorDecoder(topic).decode(record(key, value)))


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: str(seed[0][:12]))
def test_every_byte_of_a_record_changed(seed: tuple[bytes, bytes]) -> None:
    """Each prefix of key and value, and each byte changed to eight others, has a payload in each topic."""
    drawn = random.Random(5)
    for which, part in enumerate(seed):
        others = [part[:end] for end in range(len(part))]
        for position in range(len(part)):
            bytes_there = drawn.sample(range(256), 8)
            others += [part[:position] + bytes([byte]) + part[position + 1 :] for byte in bytes_there]
        for other in others:
            key, value = (other, seed[1]) if which == 0 else (seed[0], other)
            for topic in (None, *TOPICS):
                check(MirrorDecoder(topic, redact=True).decode(record(key, value)))


@pytest.mark.parametrize(("node", "name", "topic", "count"), REAL)
def test_real_records_decode_by_name_and_by_bytes(node: str, name: str, topic: MirrorTopic, count: int) -> None:
    """Every record of a real mirror has one payload: of its topic, of the topic's name, and by its bytes."""
    found = list(records_of(node, name))
    for each in found:
        payload = MirrorDecoder(topic).decode(each)
        check(payload)
        assert payload.problem is None
        assert payload == MirrorDecoder(None).decode(each)
        assert payload == topic_decoder(name, NEWEST_DIALECT, None, redact=False).decode(each)
    assert len(found) == count


def test_texts() -> None:
    """Key and value are JSON in the words of Kafka's other decoders; only what has a version shows one."""
    sync, checkpoint, heartbeat = (MirrorDecoder(None).decode(record(*write_mirror_record(each))) for each in EXAMPLES)
    assert sync.key_text == '{"type":"OFFSET_SYNC","data":{"topic":"orders","partition":1}}'
    assert sync.value_text == '{"data":{"upstreamOffset":319,"offset":317}}'
    assert checkpoint.key_text == '{"type":"CHECKPOINT","data":{"group":"readers","topic":"A.orders","partition":0}}'
    assert checkpoint.value_text == '{"version":"0","data":{"upstreamOffset":61,"offset":1,"metadata":"m"}}'
    assert heartbeat.key_text == '{"type":"HEARTBEAT","data":{"sourceClusterAlias":"A","targetClusterAlias":"B"}}'
    assert heartbeat.value_text == '{"version":"0","data":{"timestamp":1795258450024}}'
    assert (sync.version, checkpoint.version, heartbeat.version) == (None, 0, 0)
    offset = MirrorDecoder(None).decode(record(KEY, VALUE))
    assert offset.key_text == f'{{"type":"CONNECT_OFFSET","data":{KEY.decode()}}}'
    assert offset.value_text == '{"data":{"offset":319}}'
    key = MirrorDecoder(None, redact=True).decode(record(b"session-key", SESSION_KEY))
    assert key.key_text == '{"type":"CONNECT_CONFIG","data":"session-key"}'
    assert key.value_text == (
        '{"data":{"key":"[redacted]","algorithm":"HmacSHA256","creation-timestamp":1795258450258}}'
    )


@pytest.mark.parametrize("key", [*(key for key, _ in SEEDS)], ids=lambda key: str(key[:12]))
def test_tombstones(key: bytes) -> None:
    """A null value is shown as Kafka's tools show it, and has no version."""
    payload = MirrorDecoder(None).decode(record(key, None))
    assert (payload.value_text, payload.value_json, payload.version, payload.problem) == ("<DELETE>", None, None, None)
    assert payload.key_json is not None


@pytest.mark.parametrize("key", [None, b"", b"host-1", b"\0\1A\0\1", b"\0\1A\0\1B!"])
def test_heartbeats_of_an_application(key: bytes | None) -> None:
    """In a topic that is only called so, records with other keys are shown as they are, unless the user insists."""
    guessed = MirrorDecoder("heartbeats", is_named=False).decode(record(key, b"alive"))
    assert guessed == PlainDecoder().decode(record(key, b"alive"))
    assert MirrorDecoder("heartbeats").decode(record(key, b"alive")).problem is not None
    ours = MirrorDecoder("heartbeats", is_named=False).decode(record(b"\0\1A\0\1B", b"alive"))
    assert ours.problem is not None
    assert ours.problem.rule == "message-version"


@pytest.mark.parametrize("topic", [None, *TOPICS])
@pytest.mark.parametrize("value", [SESSION_KEY, SESSION_KEY + b"!", SESSION_KEY[:-1]])
def test_a_session_key_in_any_topic(topic: MirrorTopic | None, value: bytes) -> None:
    """A session key is hidden whatever the decoder makes of it, also if it cannot be read."""
    payload = MirrorDecoder(topic, redact=True).decode(record(b"session-key", value))
    assert payload.is_redacted
    assert "c2VjcmV0" not in str(payload)
    shown = MirrorDecoder(topic, redact=False).decode(record(b"session-key", value))
    assert (shown.has_secret, shown.is_redacted) == (True, False)


def test_json_that_no_line_can_have() -> None:
    """Lone surrogates, line separators and numbers of many digits are shown so that every reader takes them."""
    value = b'{"properties":{"a":"\\ud800","b":"\\u2028"}}'
    payload = MirrorDecoder("connect-configs").decode(record(b"connector-a", value))
    check(payload)
    assert payload.value_json == '{"properties":{"a":"\ufffd","b":"\\u2028"}}'
    check(MirrorDecoder("connect-configs").decode(record(b"commit-a", b'{"tasks":%d}' % (1 << 80))))
