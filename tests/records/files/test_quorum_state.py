# SPDX-License-Identifier: Apache-2.0
"""quorum-state: exact bytes of both versions, what Kafka's reader forgives and what not, and all that it wrote."""

import contextlib
import json
import uuid
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.errors import DecodeError, UnsupportedVersionError
from raftlog.records.files.quorum_state import QuorumStateData, read_quorum_state, write_quorum_state
from raftlog.uuid_text import ZERO_UUID
from raftlog.voters.voter_set import ReplicaKey
from tests.golden_files import KAFKA_FOLDERS

"""The folders of files that a real Kafka wrote."""
D1 = uuid.UUID(bytes=bytes(range(0x01, 0x11)))
V0 = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":6,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1},{"voterId":2},{"voterId":3}],"data_version":0}'
)
V1 = b'{"leaderId":-1,"leaderEpoch":5,"votedId":2,"votedDirectoryId":"AQIDBAUGBwgJCgsMDQ4PEA","data_version":1}'
V1_NO_VOTE = (
    b'{"leaderId":-1,"leaderEpoch":4,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
)

int32 = st.integers(-(2**31), 2**31 - 1)
ids = st.integers(-1, 2**31 - 1)
in_both = {"leader_id": ids, "leader_epoch": int32, "voted_id": ids}
states = st.builds(
    QuorumStateData,
    st.just(0),
    **in_both,
    current_voters=st.none() | st.lists(int32).map(tuple),
    cluster_id=st.text(st.characters(exclude_categories=["Cs"])),
    applied_offset=st.integers(-(2**63), 2**63 - 1),
) | st.builds(QuorumStateData, st.just(1), **in_both, voted_directory_id=st.none() | st.uuids())


@given(states)
@settings(deadline=None)
def test_quorum_states_round_trip(state: QuorumStateData) -> None:
    """Every state of either version is one line without a newline that reads back as the same state."""
    written = write_quorum_state(state)
    assert b"\n" not in written
    assert read_quorum_state(written) == state


def refusal(read: Callable[[bytes], object], data: bytes) -> DecodeError | None:
    """Return the typed error of a reader; any other exception propagates."""
    try:
        read(data)
    except DecodeError as error:
        return error
    return None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
mutated_bytes = st.tuples(st.sampled_from([V0, V1]), st.integers(0, 150), st.binary(max_size=4)).map(
    lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] + len(parts[2]) :]
)
mutated_fields = st.tuples(st.sampled_from([V0, V1]), st.integers(0, 6), json_values).map(
    lambda parts: replaced(parts[0], parts[1], parts[2])
)


def replaced(data: bytes, index: int, value: Any) -> bytes:
    """Give one field of a file another value."""
    fields = json.loads(data)
    fields[list(fields)[index % len(fields)]] = value
    return json.dumps(fields).encode()


@given(
    mutated_bytes | mutated_fields | st.binary(max_size=50) | json_values.map(lambda value: json.dumps(value).encode())
)
@settings(deadline=None, max_examples=120)
def test_any_bytes_are_a_value_or_a_typed_error(data: bytes) -> None:
    """Of any bytes, reading returns a state that can be written, or raises a DecodeError with rule and position."""
    error = refusal(read_quorum_state, data)
    if error is not None:
        assert error.rule == "file-format"
        assert error.position is not None
        assert 0 <= error.position <= len(data)
    else:
        state = read_quorum_state(data)
        assert read_quorum_state(write_quorum_state(state)) == state


def test_kafkas_examples() -> None:
    """The three examples of the facts page are these values, byte for byte."""
    v0 = QuorumStateData(0, leader_id=1, leader_epoch=6, current_voters=(1, 2, 3))
    v1 = QuorumStateData(1, leader_epoch=5, voted_id=2, voted_directory_id=D1)
    no_vote = QuorumStateData(1, leader_epoch=4)
    for state, data in ((v0, V0), (v1, V1), (no_vote, V1_NO_VOTE)):
        assert write_quorum_state(state) == data
        assert read_quorum_state(data) == state
    assert v1.voted_key == ReplicaKey(2, D1)
    assert v0.voted_key is no_vote.voted_key is None


def test_a_zero_directory_id_is_none() -> None:
    """A vote for a replica of a static quorum has no directory id, which is written as zero."""
    state = QuorumStateData(1, voted_id=2, voted_directory_id=ZERO_UUID)
    assert state.voted_directory_id is None
    assert state.voted_key == ReplicaKey(2)
    assert b'"AAAAAAAAAAAAAAAAAAAAAA"' in write_quorum_state(state)


def test_other_fields_and_lines_are_ignored() -> None:
    """Fields without a meaning, a change of order, blanks, and all after the first line do not matter."""
    expected = QuorumStateData(1, leader_epoch=4)
    data = (
        b'{ "data_version": 1, "x": [1], "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA", '
        b'"votedId": -1, "leaderEpoch": 4, "leaderId": -1, "clusterId": 7 }\ngarbage \xff'
    )
    assert read_quorum_state(data) == expected
    assert read_quorum_state(V1_NO_VOTE + b"\r\n") == expected


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "not JSON"),
        (b"\xff", "not UTF-8"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"{", "not JSON"),
        (V1[:-1], "not JSON"),
        (b'{"leaderId":1}', "data_version"),
        (b'{"data_version":1}', "'leaderId' is missing"),
        (V1.replace(b'"votedDirectoryId"', b'"voted"'), "'votedDirectoryId' is missing"),
        (V0.replace(b'{"voterId":2}', b"{}"), "'voterId' is missing"),
        (V0.replace(b'{"voterId":2}', b"2"), "array of objects"),
        (V0.replace(b'"clusterId":""', b'"clusterId":1'), "text"),
        (V0.replace(b'"clusterId":""', b'"clusterId":"\\ud800"'), "surrogates not allowed"),
        (V0.replace(b'"appliedOffset":0', b'"appliedOffset":9223372036854775808'), "64 bits"),
        (V1.replace(b'"leaderEpoch":5', b'"leaderEpoch":2147483648'), "32 bits"),
        (V1.replace(b'"leaderEpoch":5', b'"leaderEpoch":5.0'), "32 bits"),
        (V1.replace(b'"leaderEpoch":5', b'"leaderEpoch":true'), "32 bits"),
        (V1.replace(b'"leaderEpoch":5', b'"leaderEpoch":NaN'), "32 bits"),
        (V1.replace(b'"leaderEpoch":5', b'"leaderEpoch":-0'), "the number -0"),
        (V1.replace(b'"leaderEpoch":5', b'"leaderEpoch":' + b"9" * 10000), "not JSON"),
        (V1.replace(b'"leaderId":-1', b'"leaderId":-0'), "the number -0"),
        (V1.replace(b'"leaderId":-1', b'"leaderId":-2'), "no id"),
        (V1.replace(b'"votedId":2', b'"votedId":-2'), "no id"),
        (V1.replace(b"AQIDBAUGBwgJCgsMDQ4PEA", b"AQ"), "not a uuid"),
        (V1.replace(b'"data_version":1', b'"data_version":"1"'), "data_version"),
        (b"[" * 1_000_000, "JSON"),
        (b'{"a":' * 1_000_000, "JSON"),
    ],
)
def test_malformed_files_are_refused(data: bytes, problem: str) -> None:
    """A file that Kafka would not read is a DecodeError that says why."""
    with pytest.raises(DecodeError, match=problem) as caught:
        read_quorum_state(data)
    assert caught.value.rule == "file-format"
    assert caught.value.position is not None


def test_a_json_error_has_its_place_in_bytes() -> None:
    """The position counts bytes, not characters."""
    with pytest.raises(DecodeError) as caught:
        read_quorum_state('{"é":1 x'.encode())
    assert caught.value.position == 8


@given(states)
@settings(max_examples=20)
def test_no_flipped_bit_invents_a_leader_or_a_vote(state: QuorumStateData) -> None:
    """A file that names none never names one because of a single bit: it is refused then, or still names none."""
    state = attrs.evolve(state, leader_id=-1, voted_id=-1)
    written = write_quorum_state(state)
    for place in range(8 * len(written)):
        flipped = bytearray(written)
        flipped[place // 8] ^= 1 << place % 8
        with contextlib.suppress(DecodeError):
            read = read_quorum_state(bytes(flipped))
            assert (read.leader_id, read.voted_id) == (-1, -1)


@pytest.mark.parametrize("version", [-1, 2, 2**40])
def test_another_version_is_refused(version: int) -> None:
    """There are versions 0 and 1."""
    data = V1.replace(b'"data_version":1', b'"data_version":%d' % version)
    with pytest.raises(UnsupportedVersionError, match=str(version)) as caught:
        read_quorum_state(data)
    assert (caught.value.rule, caught.value.position) == ("file-format", 0)


@pytest.mark.parametrize(
    "fields",
    [
        {"data_version": 2},
        {"data_version": 0, "voted_directory_id": D1},
        {"data_version": 1, "current_voters": (1,)},
        {"data_version": 1, "current_voters": None},
        {"data_version": 1, "cluster_id": "c"},
        {"data_version": 1, "applied_offset": 1},
    ],
)
def test_a_field_is_never_lost_in_writing(fields: dict[str, Any]) -> None:
    """A state with a field that its version cannot say does not come into being."""
    with pytest.raises(UnsupportedVersionError):
        QuorumStateData(**fields)


def test_every_quorum_state_of_kafka_reads_and_writes_back() -> None:
    """All 26 golden files, of both versions, are written back byte for byte."""
    versions = []
    for path in (path for folder in KAFKA_FOLDERS for path in folder.rglob("quorum-state")):
        state = read_quorum_state(path.read_bytes())
        assert write_quorum_state(state) == path.read_bytes()
        versions.append(state.data_version)
    assert (len(versions), set(versions)) == (26, {0, 1})


@pytest.mark.parametrize("field", ["leader_id", "leader_epoch", "voted_id", "applied_offset", "current_voters"])
def test_numbers_fit_in_their_fields(field: str) -> None:
    """The smallest and the greatest of 32 bits, or of 64 for the offset, are taken, and one more is not.

    The least id of a leader, or of a candidate, is -1.
    """
    bits = 64 if field == "applied_offset" else 32
    least = -1 if field in {"leader_id", "voted_id"} else -(1 << bits - 1)

    def of(number: int) -> QuorumStateData:
        value: Any = (number,) if field == "current_voters" else number
        return attrs.evolve(QuorumStateData(0), **{field: value})

    for number in (least, 0, (1 << bits - 1) - 1):
        assert read_quorum_state(write_quorum_state(of(number))) == of(number)
    for number in (-(1 << bits - 1) - 1, 1 << bits - 1):
        with pytest.raises(ValueError, match=f"not a number of {bits} bits"):
            of(number)
