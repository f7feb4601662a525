# SPDX-License-Identifier: Apache-2.0
"""Secrets of Connect's configurations: which members look like one, and that nothing else is hidden."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.messages.mirrors.connect_records import ConnectConfig, read_connect_config
from raftlog.tools.payloads.config_redaction import redacted_config
from raftlog.tools.payloads.config_secrets import may_be_config_secret
from raftlog.tools.payloads.redaction import REDACTED
from tests.records.messages.mirrors.mirror_corpus import A, B, records_of
from tests.tools.made_secrets import SECRET

SECRET_NAMES = [
    "source.cluster.sasl.jaas.config",
    "target.cluster.ssl.keystore.password",
    "target.producer.ssl.key.password",
    "target.admin.ssl.keystore.key",
    "sasl.oauthbearer.client.credentials.client.secret",
    "connection.PASSWORD",
    "database.passwd",
    "db_pwd",
    "aws.access.key.id",
    "aws_secret_access_key",
    "azure.storage.account-key",
    "an.apikey",
    "rest.api.key",
    "http.auth.token",
    "value.converter.basic.auth.user.info",
    "snowflake.privateKey",
    "snowflake.private_key",
]
PLAIN_NAMES = [
    "connector.class",
    "tasks.max",
    "topics",
    "key.converter",
    "offset.lag.max",
    "source.cluster.bootstrap.servers",
    "ssl.keystore.location",
    "replication.policy.separator",
    "name",
]
SECRET_TEXTS = [
    f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{SECRET}";',
    f"jdbc:postgresql://user:{SECRET}@host:5432/db",
    f"https://:{SECRET}@host/",
    f"Server=host;Pwd = {SECRET};",
    f"AccountName=a;SharedSecret={SECRET}",
    f"-----BEGIN PRIVATE KEY-----\n{SECRET}",
]
PLAIN_TEXTS = ["127.0.0.1:19091", "https://host:8083/path@x", "orders|tx.*", "a=b", "10", ""]

CLASS = {"connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector"}


def config_of(properties: dict[str, Any], key: str = "connector-a") -> ConnectConfig:
    """Make a configuration of a connector."""
    return ConnectConfig(key, {"properties": properties})


def value_of(config: ConnectConfig) -> bytes:
    """Write a configuration's value."""
    return json.dumps(config.value).encode()


@given(
    st.dictionaries(st.sampled_from(PLAIN_NAMES), st.none() | st.sampled_from(PLAIN_TEXTS)),
    st.dictionaries(st.sampled_from(SECRET_NAMES), st.just(SECRET)),
    st.dictionaries(st.sampled_from(PLAIN_NAMES), st.sampled_from(SECRET_TEXTS)),
    st.sampled_from(["connector-a", "task-a-0"]),
)
def test_properties(plain: dict[str, Any], named: dict[str, str], texts: dict[str, str], key: str) -> None:
    """Secrets by name and by text are hidden; every other property stays, in its place; both judgements agree."""
    properties = plain | named | texts | CLASS
    config = config_of(properties, key)

    shown, has_secret = redacted_config(config)

    hidden = named.keys() | (texts.keys() - CLASS.keys())
    expected = {name: REDACTED if name in hidden else value for name, value in properties.items()}
    assert shown == {"properties": expected}
    assert list(shown["properties"]) == list(properties)
    assert has_secret == bool(hidden)
    assert SECRET not in json.dumps(shown)
    assert may_be_config_secret(value_of(config), is_config=True) == has_secret
    assert may_be_config_secret(value_of(config)) == has_secret


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_names_of_secrets(name: str) -> None:
    """A property with a secret's name is hidden, deep inside too; null is no secret."""
    assert redacted_config(config_of({name: "x"})) == ({"properties": {name: REDACTED}}, True)
    assert redacted_config(config_of({name: None})) == ({"properties": {name: None}}, False)
    deep = ConnectConfig("other", {"a": [{"b": {name: {"c": "x"}}}]})
    assert redacted_config(deep) == ({"a": [{"b": {name: REDACTED}}]}, True)


@pytest.mark.parametrize("name", PLAIN_NAMES)
@pytest.mark.parametrize("text", PLAIN_TEXTS)
def test_plain_properties(name: str, text: str) -> None:
    """Usual properties are shown."""
    assert redacted_config(config_of({name: text})) == ({"properties": {name: text}}, False)


@pytest.mark.parametrize("text", SECRET_TEXTS)
def test_texts_of_secrets(text: str) -> None:
    """A text with a password is hidden whatever its name, in lists too."""
    assert redacted_config(config_of({"name": text})) == ({"properties": {"name": REDACTED}}, True)
    assert redacted_config(ConnectConfig("other", {"a": [text, 1]})) == ({"a": [REDACTED, 1]}, True)


def test_session_keys() -> None:
    """Of a session key only algorithm and time are shown, also if it has members that Kafka does not write."""
    value = {"key": SECRET, "algorithm": "HmacSHA256", "creation-timestamp": 7}
    config = ConnectConfig("session-key", {**value, "more": SECRET})
    assert redacted_config(config) == ({**value, "key": REDACTED, "more": REDACTED}, True)
    assert redacted_config(ConnectConfig("session-key", None)) == (None, False)
    assert redacted_config(ConnectConfig("session-key", {"algorithm": "a"})) == ({"algorithm": "a"}, False)
    assert may_be_config_secret(json.dumps(value).encode())
    assert not may_be_config_secret(json.dumps({**value, "more": 1}).encode())
    assert may_be_config_secret(json.dumps({"key": SECRET}).encode(), is_config=True)


@pytest.mark.parametrize(
    ("value", "anywhere", "in_configs"),
    [
        (None, False, False),
        (b"", False, True),
        (b"{", False, True),
        (b'{"connector.class":', True, True),
        (b"[]", False, True),
        (b"{}", False, False),
        (b'{"tasks":1}', False, False),
        (b'{"password":"p"}', False, True),
        (b'{"properties":{"password":"p"}}', False, True),
        (b'{"properties":{"password":"p","task.class":"c"}}', True, True),
        (b'{"properties":{"password":null,"task.class":"c"}}', False, False),
        (b'{"properties":[".class\\"","task.class"]}', False, False),
        (b'{"a.class":1,"password":"p"}', False, True),
        (b'\xff{"connector.class":', False, True),
    ],
)
def test_values_of_unknown_topics(value: bytes | None, anywhere: bool, in_configs: bool) -> None:
    """In other topics only what Connect writes counts; in a topic of configurations, also what cannot be read."""
    assert may_be_config_secret(value) == anywhere
    assert may_be_config_secret(value, is_config=True) == in_configs


@pytest.mark.parametrize(("node", "topic"), [(A, "mm2-configs.B.internal"), (B, "mm2-configs.A.internal")])
def test_configurations_of_a_real_mirror(node: str, topic: str) -> None:
    """The session key is the only secret, by key and by value; nothing else is hidden."""
    for record in records_of(node, topic):
        config = read_connect_config(record.key, record.value)
        shown, has_secret = redacted_config(config)
        is_session_key = record.key == b"session-key"
        assert has_secret == is_session_key
        assert may_be_config_secret(record.value) == is_session_key
        assert may_be_config_secret(record.value, is_config=True) == is_session_key
        assert shown == ({**(config.value or {}), "key": REDACTED} if is_session_key else config.value)
