# SPDX-License-Identifier: Apache-2.0
"""Images of the cluster equal those of Kafka's own loader, and the first record without effect is where it stops."""

from pathlib import Path
from uuid import UUID

from hypothesis import HealthCheck, Phase, given, settings

from raftlog.records.messages.metadata import read_metadata_record
from raftlog.tools.image.cluster_image import ClusterImage, MetadataBatch
from raftlog.tools.state.positions import Position
from raftlog.tools.state.state_search import StateSource, earliest, find_state
from tests.golden_files import GOLDEN, KAFKA_FOLDERS
from tests.kafka import dump_tool
from tests.kafka.kafka_images import SNAPSHOT_OFFSET, Story, comparable, kafka_images
from tests.tools.image.metadata_stories import metadata_stories
from tests.tools.image.test_cluster_image import batches_of_file
from tests.tools.loading.poisoned_logs import POISONED
from tests.tools.state.made_metadata import found_copies

pytestmark = dump_tool.marks("Kafka's loader")

NODES = sorted(path.parent for folder in KAFKA_FOLDERS for path in folder.rglob("__cluster_metadata-0"))
MOST_STORIES = 750


def test_there_are_logs_of_every_corpus() -> None:
    """Each folder of Kafka's files has a node."""
    folders = {path.relative_to(GOLDEN).parts[0] for path in NODES}
    assert folders >= {"dynamic-quorum", "static-upgrade", "wire", "mirror", "killed", "groups", "data-topics"}


def story_of(copy: StateSource) -> list[MetadataBatch]:
    """The batches of a node's log, after the snapshot that the log starts at, if it does not start at 0."""
    start = earliest(copy).offset or 0
    story = []
    for snapshot_id, file in copy.log.snapshots_by_id.items():
        if start and snapshot_id.offset == start:
            values = [value for batch in batches_of_file(Path(file.task.path)) for value in batch.values]
            story.append(MetadataBatch(SNAPSHOT_OFFSET, start, 0, 0, values))
    for segment in copy.log.segments:
        story += [each for each in batches_of_file(Path(segment.task.path)) if each.base_offset >= start]
    return story


def test_states_of_all_corpora_are_kafkas_images() -> None:
    """At the end of each batch of each node's log, whichever snapshot the state begins with."""
    nodes = [found_copies(node)[0][0] for node in NODES]
    stories = [story_of(copy) for copy in nodes]
    compared = 0
    for copy, story, answers in zip(nodes, stories, kafka_images(stories), strict=True):
        for batch, answer in zip(story, answers, strict=True):
            if batch.next_offset <= copy.log_end:
                state = find_state([copy], Position(offset=batch.next_offset))
                assert comparable(state.image.tables) == answer
                assert not state.image.refusals
                compared += 1
    assert compared > 10 * len(nodes)


def generated(most: int = MOST_STORIES) -> list[Story]:
    """The same stories each time, so many."""
    found: list[Story] = []

    @settings(
        max_examples=most,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(metadata_stories())
    def collect(story: tuple[list[MetadataBatch], object]) -> None:
        found.append(story[0])

    collect()
    return found


def without_effect(story: Story) -> set[int]:
    """The offsets in transactions that are aborted, or not ended where the story is."""
    found: set[int] = set()
    held: set[int] | None = None
    for batch in story:
        for offset, value in enumerate(batch.values, batch.base_offset):
            name = read_metadata_record(value).type_name
            if name == "BEGIN_TRANSACTION_RECORD" and held is None:
                held = set()
            elif name == "END_TRANSACTION_RECORD" and held is not None:
                held = None
            elif name == "ABORT_TRANSACTION_RECORD" and held is not None:
                found, held = found | held, None
            elif held is not None:
                held.add(offset)
    return found | (held or set())


def may_lose_credentials(batch: MetadataBatch, image: ClusterImage) -> bool:
    """Whether Kafka 4.4.0 may forget a SCRAM credential that is set together with the removal of another one.

    ``ScramDelta#apply`` drops the table of a mechanism as soon as a removal has emptied it, and sets the others in the
    table that it has dropped. We keep them.

    Args:
        batch: that is applied next.
        image: before it. A transaction is applied as a whole.
    """
    names = {read_metadata_record(value).type_name for value in batch.values}
    others = {"USER_SCRAM_CREDENTIAL_RECORD", "BEGIN_TRANSACTION_RECORD"}
    return "REMOVE_USER_SCRAM_CREDENTIAL_RECORD" in names and (bool(names & others) or image.transaction is not None)


def uses_a_removed_topic(batch: MetadataBatch, image: ClusterImage) -> bool:
    """Whether a batch, or the transaction that it belongs to, has records of a topic after its removal.

    Kafka's loader looks for the topic in the image before the batch, and overlooks that. Its controllers die of it.
    """
    pending = [] if image.transaction is None else [(each.name, each.message) for each in image.transaction.pending]
    records = (read_metadata_record(value) for value in batch.values)
    removed = set[UUID]()
    for name, message in [*pending, *((each.type.name, each.message) for each in records)]:
        if message.get("topicId") in removed:
            return True
        removed |= {message["topicId"]} if name == "RemoveTopicRecord" else set()
    return False


def keeps_what_is_aborted(batch: MetadataBatch) -> bool:
    """Whether a batch has a record after an abort.

    Kafka's loader then forgets that the transaction was aborted, and keeps its changes. Controllers write none such.
    """
    return "ABORT_TRANSACTION_RECORD" in [read_metadata_record(value).type_name for value in batch.values[:-1]]


def test_generated_records_make_kafkas_images() -> None:
    """After each batch, up to the first record that Kafka's loader refuses: the same is our first without effect.

    Kafka refuses a record of a transaction at once, and we when it has effect: not if that is aborted or never ends.
    Stories in which Kafka may forget a credential, overlooks the removal of a topic, or keeps what is aborted, are
    compared up to there.
    """
    stories = generated()
    faults = images = 0
    for story, answers in zip(stories, kafka_images(stories), strict=True):
        image = ClusterImage()
        for batch, answer in zip(story, answers, strict=True):
            if may_lose_credentials(batch, image) or uses_a_removed_topic(batch, image) or keeps_what_is_aborted(batch):
                break
            image.apply(batch)
            if "fault" in answer:
                for later in story:
                    if later.base_offset > batch.base_offset:
                        image.apply(later)
                if answer["fault"] not in without_effect(story):
                    assert min(image.refusals).offset == answer["fault"], (answer, batch, image.refusals)
                    faults += 1
                break
            assert not image.refusals, batch
            assert comparable(image.tables) == answer, batch
            images += 1
    assert images > MOST_STORIES
    assert faults > MOST_STORIES // 10


def test_a_level_of_kraft_version_has_no_effect() -> None:
    """Kafka's loader ignores it too."""
    (answers,) = kafka_images([POISONED["kraft.version 1 as a record"].story[1:]])
    assert [set(answer["features"]) for answer in answers] == [{"metadata.version"}] * 2
