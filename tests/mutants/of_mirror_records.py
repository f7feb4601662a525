# SPDX-License-Identifier: Apache-2.0
"""Decoders that take damaged records of MirrorMaker for sound ones, or one kind for another, or show a secret."""

from typing import Any, Final

from raftlog.errors import InvalidRecordError
from raftlog.records.messages.mirrors import connect_records, mirror_records
from raftlog.tools.payloads import config_redaction, mirror_payloads, mirror_topics
from raftlog.tools.querying import hidden_values
from tests.mutants.planting import Mutant, Wrong, instead, swapped

RECORDS: Final = "tests/records/messages/mirrors/test_mirror_records.py"
CONNECT: Final = "tests/records/messages/mirrors/test_connect_records.py"
PAYLOADS: Final = "tests/tools/payloads/test_mirror_payloads.py"
REDACTION: Final = "tests/tools/payloads/test_config_redaction.py"


def _any_version(right: Wrong) -> Wrong:
    return lambda kind, value: right(kind, bytes(2) + value[2:] if kind.has_version else value)


def _with_a_rest(layout: Any, data: Any, start: int, what: str) -> Any:
    return layout.read(data, start, version=0)[0]


def _unreadable_is_plain(right: Wrong) -> Wrong:
    def wrong(value: bytes, *, is_config: bool) -> bool:
        try:
            connect_records.read_json(value, "it")
        except InvalidRecordError:
            return False
        return bool(right(value, is_config=is_config))

    return wrong


def _by_name_alone(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: config_redaction._hidden_member(name, item) for name, item in value.items()}
    return value


def _as_the_identity_policy(right: Wrong) -> Wrong:
    return lambda name: "heartbeats" if name is not None and name.endswith("heartbeats") else right(name)


def _first_that_fits(right: Wrong) -> Wrong:
    return lambda key, value: right(key, bytes(16))


MUTANTS: Final = (
    Mutant(
        "R-mirror-records-version",
        "a version other than 0 is an error",
        "Checkpoint#valueSchema",
        swapped(mirror_records, "_read_value", _any_version),
        (f"{RECORDS}::test_errors", f"{RECORDS}::test_any_bytes_are_a_record_or_refused"),
    ),
    Mutant(
        "R-mirror-records-rest",
        "bytes left over are an error",
        "Schema#read",
        instead(mirror_records, "_read_whole", _with_a_rest),
        (f"{RECORDS}::test_errors", f"{RECORDS}::test_every_prefix_is_refused"),
    ),
    Mutant(
        "R-mirror-records-boolean",
        "JSON's true is no offset, and no number of a partition",
        "MirrorUtils#unwrapOffset",
        instead(connect_records, "_is_integer", lambda value, _end: isinstance(value, int)),
        (f"{CONNECT}::test_what_is_no_source_offset",),
    ),
    Mutant(
        "R-mirror-records-nesting",
        "JSON that is nested deeper than the limit is refused",
        "StreamReadConstraints",
        instead(connect_records, "_is_deeper", lambda _value, _levels: False),
        (f"{CONNECT}::test_what_is_no_json", f"{CONNECT}::test_nesting_is_limited"),
    ),
    Mutant(
        "R-mirror-records-names",
        "a topic of heartbeats has the separator before the word",
        "ReplicationPolicy#isHeartbeatsTopic",
        swapped(mirror_topics, "mirror_topic", _as_the_identity_policy),
        ("tests/tools/payloads/test_mirror_topics.py::test_names",),
    ),
    Mutant(
        "R-mirror-records-alias",
        "the key of a flow to an alias of two letters is not that of an offset sync",
        "Heartbeat#recordKey",
        swapped(mirror_payloads, "topic_by_bytes", _first_that_fits),
        (f"{PAYLOADS}::test_an_alias_of_two_letters",),
    ),
    Mutant(
        "R-mirror-records-application",
        "a topic of an application that is called heartbeats has no findings",
        "MirrorClient#heartbeatTopics",
        instead(mirror_payloads, "_is_heartbeat_key", lambda _: True),
        (f"{PAYLOADS}::test_heartbeats_of_an_application",),
    ),
    Mutant(
        "R-mirror-records-session-key",
        "a session key is never shown",
        "KafkaConfigBackingStore#putSessionKey",
        instead(config_redaction, "redacted_config", lambda config: (config.value, False)),
        (f"{PAYLOADS}::test_a_session_key_in_any_topic", f"{REDACTION}::test_session_keys"),
    ),
    Mutant(
        "R-mirror-records-texts",
        "a property with a password in its text is hidden, whatever its name",
        "ConnectorsResource",
        instead(config_redaction, "_hidden", _by_name_alone),
        (f"{REDACTION}::test_texts_of_secrets",),
    ),
    Mutant(
        "R-mirror-records-unreadable",
        "what cannot be read may be a secret",
        "KafkaConfigBackingStore",
        swapped(config_redaction, "is_config_secret", _unreadable_is_plain),
        (f"{REDACTION}::test_values_of_unknown_topics",),
    ),
    Mutant(
        "R-mirror-records-query",
        "a query sees no secret of Connect",
        "KafkaConfigBackingStore",
        instead(hidden_values, "_config_secrets", lambda _values, _part: set()),
        ("tests/tools/querying/test_hidden_values.py::test_configurations_that_cannot_be_read",),
    ),
)
