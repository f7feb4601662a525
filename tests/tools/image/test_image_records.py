# SPDX-License-Identifier: Apache-2.0
"""The records of an image make that image again."""

import pytest
from hypothesis import given, settings

from raftlog.errors import UnsupportedVersionError
from raftlog.records.messages.metadata import MetadataRecord, read_metadata_record
from raftlog.records.messages.releases import METADATA_VERSIONS
from raftlog.tools.image.cluster_image import ClusterImage, MetadataBatch
from raftlog.tools.image.image_records import image_records
from raftlog.tools.image.tables import Tables
from tests.golden_files import golden_id
from tests.tools.image.metadata_stories import metadata_stories
from tests.tools.image.naive_cluster import described
from tests.tools.image.test_cluster_image import LOGS, applied, batches_of_file, data_file, record
from tests.tools.loading.poisoned_logs import broker, partition, topic

VERSIONS = {"metadata.version": METADATA_VERSIONS["4.3-IV0"], "eligible.leader.replicas.version": 1}
Drawn = tuple[list[MetadataBatch], list[list[MetadataRecord]]]


def replayed(tables: Tables) -> ClusterImage:
    """The image of the records of tables."""
    image = ClusterImage()
    values = list(image_records(tables))
    image.apply(MetadataBatch(0, len(values), 1, 1, values))
    return image


@settings(max_examples=50, deadline=None)
@given(metadata_stories())
def test_the_records_of_an_image_make_it_again(story: Drawn) -> None:
    """All of it, and no record is refused; only the order of features begins with metadata.version."""
    image = ClusterImage()
    for batch in story[0]:
        image.apply(batch)
    image.tables.features.update(VERSIONS)
    again = replayed(image.tables)
    assert again.tables == image.tables
    assert described(again.tables) == described(image.tables)
    assert not again.refusals
    assert next(iter(again.tables.features)) == "metadata.version"


@pytest.mark.parametrize("dump", LOGS, ids=golden_id)
def test_images_of_kafkas_logs_are_their_records(dump: object) -> None:
    """After each batch that ends outside of a transaction and with a metadata.version."""
    image = ClusterImage()
    for batch in batches_of_file(data_file(dump)):  # type: ignore[arg-type]
        image.apply(batch)
        if "metadata.version" in image.tables.features:
            assert replayed(image.tables).tables == image.tables


@pytest.mark.parametrize(
    ("name", "kind", "version"),
    [
        ("3.3-IV3", "RegisterBrokerRecord", 1),
        ("3.4-IV0", "RegisterBrokerRecord", 2),
        ("3.7-IV1", "RegisterBrokerRecord", 2),
        ("3.7-IV2", "RegisterBrokerRecord", 3),
        ("4.2-IV1", "RegisterBrokerRecord", 3),
        ("4.3-IV0", "RegisterBrokerRecord", 4),
        ("3.7-IV1", "PartitionRecord", 0),
        ("3.7-IV2", "PartitionRecord", 1),
        ("4.0-IV0", "PartitionRecord", 1),
        ("4.0-IV1", "PartitionRecord", 2),
    ],
)
def test_records_have_the_version_of_the_metadata_version(name: str, kind: str, version: int) -> None:
    """At the level that brought a version, and one before."""
    level = record("FeatureLevelRecord", name="metadata.version", featureLevel=METADATA_VERSIONS[name])
    tables = applied([level, broker(1), topic("a", 1), partition()]).tables
    (found,) = [each for each in map(read_metadata_record, image_records(tables)) if each.type.name == kind]
    assert found.version == version


def test_what_a_metadata_version_has_no_field_for_is_refused() -> None:
    """Directories before 3.7-IV2: Kafka would not write them either."""
    directories = [each.topic_id for each in applied([topic("a", 7), topic("b", 8)]).tables.topics.values()]
    for name, fails in (("3.7-IV1", True), ("3.7-IV2", False)):
        level = record("FeatureLevelRecord", name="metadata.version", featureLevel=METADATA_VERSIONS[name])
        tables = applied([level, topic("a", 1), partition(directories=directories)]).tables
        if fails:
            with pytest.raises(UnsupportedVersionError):
                list(image_records(tables))
        else:
            assert replayed(tables).tables == tables


def test_eligible_leader_replicas_need_their_feature() -> None:
    """Without it Kafka writes none."""
    level = record("FeatureLevelRecord", name="metadata.version", featureLevel=METADATA_VERSIONS["4.3-IV0"])
    feature = record("FeatureLevelRecord", name="eligible.leader.replicas.version", featureLevel=1)
    entry = record("PartitionRecord", topicId=topic("a", 1).message["topicId"], eligibleLeaderReplicas=[3])
    for features, expected in (([level], ()), ([level, feature], (3,))):
        tables = replayed(applied([*features, topic("a", 1), entry]).tables).tables
        (of_topic,) = tables.partitions.values()
        assert [each.eligible_leader_replicas for each in of_topic.values()] == [expected]
