# SPDX-License-Identifier: Apache-2.0
"""What metadata say of topics: when each was made, and when another one of its name was."""

from pathlib import Path
from uuid import UUID

from raftlog.tools.mirrors.reading.metadata import TopicLife, read_metadata
from tests.golden_files import GOLDEN
from tests.tools.state.made_metadata import ORDERS, PARTITION, TOPIC, VERSION, metadata_log, record

NEWER = UUID(int=78)
GONE = record("RemoveTopicRecord", topicId=ORDERS)
AGAIN = record("TopicRecord", name="orders", topicId=NEWER)
FIRST_MS, STEP_MS = 1_000_000, 1000


def test_a_topic_that_was_made_anew_has_two_lives(tmp_path: Path) -> None:
    """Both ids, with the times of the records that made and removed them."""
    found = read_metadata([str(metadata_log(tmp_path, [VERSION], [TOPIC, PARTITION], [GONE], [AGAIN]))])
    assert found is not None
    times = [FIRST_MS + STEP_MS * number for number in range(4)]
    assert found.lives == {"orders": (TopicLife(ORDERS, times[1], times[2]), TopicLife(NEWER, times[3]))}
    assert (found.former_id("orders"), found.since_ms("orders")) == (ORDERS, times[3])
    assert found.tables.topic_ids == {"orders": NEWER}
    assert not found.is_compacted("orders")


def test_a_topic_that_was_never_made_anew_has_one_life(tmp_path: Path) -> None:
    """Nothing is said of when it was made anew; nor of a topic that is not there."""
    found = read_metadata([str(metadata_log(tmp_path, [VERSION], [TOPIC, PARTITION]))])
    assert found is not None
    assert [each.topic_id for each in found.lives["orders"]] == [ORDERS]
    for topic in ("orders", "nothing"):
        assert (found.former_id(topic), found.since_ms(topic)) == (None, None)


def test_without_metadata_nothing_is_known(tmp_path: Path) -> None:
    """A directory without a metadata log says nothing; and a real one says of each of its topics when it was made."""
    assert read_metadata([str(tmp_path)]) is None
    found = read_metadata([str(GOLDEN / "mirror/data/n1")])
    assert found is not None
    assert {"orders", "tx.orders"} <= set(found.lives)
    assert all(len(lives) == 1 and lives[0].created_ms for lives in found.lives.values())
