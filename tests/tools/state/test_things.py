# SPDX-License-Identifier: Apache-2.0
"""Things of an image have paths that find them again, JSON members, and no secrets."""

import json
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.messages.metadata import MetadataRecord
from raftlog.tools.image.cluster_image import ClusterImage, MetadataBatch
from raftlog.tools.image.entries import DelegationToken, ScramCredential
from raftlog.tools.image.tables import Tables
from raftlog.tools.state.things import changed_members, is_under, parse_path, path_text, things
from tests.tools.image.metadata_stories import metadata_stories


@given(st.lists(st.text().filter(lambda name: name != "%")).map(tuple))
def test_the_text_of_a_path_is_that_path(path: tuple[str, ...]) -> None:
    """Whatever names have in them, slashes and nothing at all included."""
    assert parse_path(path_text(path)) == path


def test_paths_are_read_as_people_write_them() -> None:
    """Slashes at either end make no difference, and the root has no names."""
    assert parse_path("/topics/orders/") == parse_path("topics/orders") == ("topics", "orders")
    assert parse_path("/") == parse_path("") == ()


def test_a_thing_is_under_itself_and_what_leads_to_it() -> None:
    """Names count as a whole."""
    assert is_under(("topics", "a", "0"), ("topics", "a"))
    assert is_under(("topics", "a"), ("topics", "a"))
    assert is_under(("topics", "a"), ())
    assert not is_under(("topics", "ab"), ("topics", "a"))
    assert not is_under(("topics",), ("topics", "a"))


@given(metadata_stories())
def test_each_entry_is_one_thing(story: tuple[list[MetadataBatch], list[list[MetadataRecord]]]) -> None:
    """There are as many things as entries; members are JSON, and of one kind they have the same names."""
    image = ClusterImage()
    for batch in story[0]:
        image.apply(batch)
    tables = image.tables
    flat = ("features", "topics", "brokers", "controllers", "acls", "scram", "delegation_tokens", "producer_ids")
    count = sum(len(getattr(tables, name)) for name in flat)
    count += sum(len(inner) for name in ("partitions", "configs", "quotas") for inner in getattr(tables, name).values())
    found = list(things(tables))
    assert len(found) == count
    names: dict[str, list[str]] = {}
    for thing in found:
        assert json.loads(json.dumps(thing.members)) == thing.members
        assert names.setdefault(thing.kind, list(thing.members)) == list(thing.members)
        assert changed_members(thing, thing) == []
        other = thing._replace(members=dict.fromkeys(thing.members, "other"))
        assert changed_members(other, thing) == changed_members(thing, other) == list(thing.members)


def test_secrets_are_not_shown() -> None:
    """Neither keys of credentials, nor ids of tokens, nor passwords in configs; the rest is."""
    tables = Tables()
    tables.scram["alice", 1] = ScramCredential(b"hidden-1", b"hidden-2", b"hidden-3", 4096)
    tables.delegation_tokens["hidden-4"] = DelegationToken("User:bob", "User:bob", ("User:eve",), 1, 2, 3)
    tables.configs[4, "1"] = {"ssl.keystore.password": "hidden-5", "log.dirs": "/data"}
    text = json.dumps([thing._asdict() for thing in things(tables)])
    assert "hidden" not in text
    for shown in ("alice", "4096", "User:bob", "User:eve", "/data", "ssl.keystore.password", "[redacted]"):
        assert shown in text


def test_owners_of_configs_and_quotas_have_names() -> None:
    """Defaults are told apart from names, and unknown types are numbers."""
    tables = Tables()
    tables.configs = {(4, ""): {"a": "1"}, (2, "t/u"): {"b": "2"}, (99, "x"): {"c": "3"}}
    tables.quotas = {frozenset({("user", None), ("client-id", "c")}): {"q": 1.5}}
    tables.features = {"metadata.version": 7}
    tables.topic_ids = {"t": UUID(int=1)}
    assert [path_text(thing.path) for thing in things(tables)] == [
        "/features/metadata.version",
        "/configs/broker/<default>/a",
        "/configs/topic/t%2Fu/b",
        "/configs/type-99/x/c",
        "/client_quotas/client-id=c,user=<default>/q",
    ]
