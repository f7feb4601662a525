# SPDX-License-Identifier: Apache-2.0
"""The table of releases, and what must be there for each of its rows."""

import itertools
import re

import pytest

from raftlog.records.messages.releases import DIALECTS, LEVELS, METADATA_VERSIONS, NEWEST_DIALECT, RELEASES, Release
from raftlog.records.messages.schema import message_types
from tests.checkout import ROOT
from tests.golden_files import GOLDEN
from tests.kafka.dump_tool import CORPUS_DIALECT
from tests.tools.payloads.test_dialect_goldens import COMPARED_ON_DAMAGED_FILES, COMPARED_ON_REAL_FILES
from tests.tools.payloads.test_format_features import OF_KAFKA


def test_releases_are_in_order_by_their_numbers() -> None:
    """Each row is greater than the one before it, and 4.10 is greater than 4.9."""
    assert all(one < other and one <= other and not other <= one for one, other in itertools.pairwise(RELEASES))
    assert Release((4, 9), ()) < Release((4, 10), ())
    assert str(Release((4, 10), ())) == "4.10"


@pytest.mark.parametrize(
    ("name", "level"), [("3.3-IV3", 7), ("3.9-IV0", 21), ("4.0-IV0", 22), ("4.3-IV0", 30), ("4.4-IV2", 33)]
)
def test_levels_of_metadata_version(name: str, level: int) -> None:
    """The levels are those of Kafka's MetadataVersion."""
    assert METADATA_VERSIONS[name] == level


def test_every_dialect_has_goldens() -> None:
    """A release whose tool is followed has its answers on real and on damaged files; the corpus has those of one."""
    assert set(COMPARED_ON_DAMAGED_FILES) == set(DIALECTS)
    assert set(COMPARED_ON_REAL_FILES) | {CORPUS_DIALECT} == set(DIALECTS)
    for name in COMPARED_ON_DAMAGED_FILES:
        assert (GOLDEN / "dialects" / name).is_dir() or name == CORPUS_DIALECT


def test_kafka_of_every_release_can_be_fetched() -> None:
    """A release with its own messages has its profile in the pom.xml by which Maven fetches its classes."""
    profiles = re.findall(r"<id>kafka-([\d.]+)</id>", (ROOT / "tests/kafka/pom.xml").read_text("utf-8"))
    assert profiles == list(LEVELS)


def test_every_dialect_is_documented() -> None:
    """The README names each release whose tool is followed; other pages say from which one to which one."""
    *before, newest = DIALECTS
    assert f"kafka-dump-log {', '.join(before)} or {newest}\n" in (ROOT / "README.md").read_text("utf-8")
    for page in ("docs/dump-log.md", "docs/trust.md"):
        assert f" {before[0]} to {newest}" in (ROOT / page).read_text("utf-8"), page


def test_the_newest_release_is_in_the_changelog() -> None:
    """The CHANGELOG says that its messages are decoded."""
    assert f"- Kafka {RELEASES[-1]}: " in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_features_of_every_dialect_are_compared() -> None:
    """`log init` makes the choice of Kafka for the newest release whose tool is followed."""
    assert NEWEST_DIALECT.name in OF_KAFKA


def test_every_dialect_has_levels_of_messages() -> None:
    """A release whose tool is followed has its own messages."""
    assert set(DIALECTS) <= set(LEVELS)


def test_every_release_that_a_schema_names_is_in_the_table() -> None:
    """Each ``since`` of a message or a field is a release of the table."""
    named = {each.schema.since for group in ("metadata-records", "raft-rpcs") for each in message_types(group).values()}
    assert named <= set(LEVELS)
