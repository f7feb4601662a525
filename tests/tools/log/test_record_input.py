# SPDX-License-Identifier: Apache-2.0
"""Records as JSON lines: dump-log's output is read back, and other lines are refused with their number."""

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.messages.metadata import MetadataRecord, read_metadata_record, write_metadata_record
from raftlog.tools.log.record_input import read_record_values
from tests.golden_files import GOLDEN
from tests.records.schema_strategies import ALL_VERSIONS, messages
from tests.tools.console import dump

GOLDEN_LOG = GOLDEN / "dynamic-quorum"
VERSIONS = [(kind, version) for kind, version in ALL_VERSIONS if kind.schema.kind == "metadata"]
records = st.sampled_from(VERSIONS).flatmap(
    lambda chosen: st.builds(MetadataRecord, st.just(chosen[0]), st.just(chosen[1]), messages(*chosen))
)


def values_of(*lines: object) -> list[bytes]:
    """The values of lines; a line that is not bytes is written as JSON."""
    return list(read_record_values(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))


@settings(deadline=None, max_examples=30)
@given(records)
def test_every_metadata_record_is_read_back(record: MetadataRecord) -> None:
    """A record's JSON gives a record of the same JSON: every type, version and field."""
    shown = read_metadata_record(write_metadata_record(record)).to_object()
    (value,) = values_of({"kind": "record", "is_control": False, "key": None, "headers": [], **shown})
    assert read_metadata_record(value).to_object() == shown


@settings(deadline=None)
@given(st.binary(min_size=1))
def test_every_value_is_read_back(value: bytes) -> None:
    """Bytes come back, as base64 and, where they are text, as text."""
    assert values_of({"value_base64": base64.b64encode(value).decode()}) == [value]
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return
    assert values_of({"value": text}) == [value]


@settings(deadline=None, max_examples=50)
@given(
    st.binary(max_size=40)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["kind", "key", "type", "version", "data", "value", "value_base64", "headers", "name"])
                | st.text(max_size=3),
                inner | st.sampled_from(["record", "TOPIC_RECORD", "CONFIG_RECORD"]),
                max_size=5,
            )
        ),
        max_leaves=12,
    )
)
def test_any_line_gives_values_or_an_error_that_names_it(line: object) -> None:
    """Whatever a line is, it gives at most one value, or a ValueError that says which line it was."""
    try:
        assert len(values_of(line)) <= 1
    except ValueError as error:
        assert str(error).startswith("line 1 of standard input: ")  # noqa: PT017 - most lines are wrong, some are not


def test_what_dump_log_prints_is_read_back() -> None:
    """The data records of a real log come back from dump-log's JSON lines; everything else there is passed over."""
    path = next(GOLDEN_LOG.rglob("00000000000000000000.log"))
    printed = dump("--format", "jsonl", "--no-redact", path).output.splitlines()
    data_records = [each for each in map(json.loads, printed) if each["kind"] == "record" and not each["is_control"]]
    stored = [read_metadata_record(value).to_object() for value in read_record_values(printed)]
    assert stored == [{name: each[name] for name in ("type", "version", "data")} for each in data_records]
    assert stored


@pytest.mark.parametrize(
    "line",
    [
        b"hello",
        b"[1]",
        b"\xff",
        b"[" * 100_000,
        b'{"value":1}',
        b'{"value":""}',
        b"{}",
        b'{"value":null}',
        b'{"value_base64":"?"}',
        b'{"value_base64":7}',
        b'{"key":"k","value":"v"}',
        b'{"key_base64":"AA==","value":"v"}',
        b'{"headers":[{"key":"k","value":"v"}],"value":"v"}',
        b'{"redacted":true,"type":"USER_SCRAM_CREDENTIAL_RECORD","version":0}',
        b'{"type":"NO_SUCH_RECORD","version":0,"data":{}}',
        b'{"type":["TOPIC_RECORD"],"data":{}}',
        b'{"type":"TOPIC_RECORD","version":99,"data":{}}',
        b'{"type":"TOPIC_RECORD","version":true,"data":{}}',
        b'{"type":"TOPIC_RECORD","data":[]}',
        b'{"type":"TOPIC_RECORD","data":{"name":"x","topicId":"short"}}',
        b'{"type":"TOPIC_RECORD","data":{"nam":"x"}}',
        b'{"type":"PARTITION_RECORD","data":{"replicas":7}}',
        b'{"type":"PARTITION_RECORD","data":{"partitionId":12345678901}}',
    ],
    ids=lambda line: repr(line[:40]),
)
def test_other_values_than_records_are_refused(line: bytes) -> None:
    """A line that describes no record that a metadata log can hold is refused in one line, which says which it was."""
    with pytest.raises(ValueError, match=r"\Aline 3 of standard input: [^\n]+\Z"):
        values_of({"value": "first"}, b"\n", line)
