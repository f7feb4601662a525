# SPDX-License-Identifier: Apache-2.0
"""Records of learned shapes, which the kernel replays, beside the same records replayed one by one."""

import contextlib
from collections.abc import Iterator
from typing import Any, Final
from unittest import mock
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records import kernel_choice
from raftlog.records.messages.generated_source import NOT_USUAL
from raftlog.records.messages.metadata import MetadataRecord
from raftlog.records.messages.schema import message_type
from raftlog.tools.image import cluster_image, replay
from raftlog.tools.image.cluster_image import ClusterImage, MetadataBatch
from raftlog.tools.image.replay import FRAME_SIZE, decoder
from raftlog.tools.image.shaped_changes import ShapedChanges
from raftlog.tools.image.shaped_reader import Shape, ShapedReader
from raftlog.tools.image.tables import Tables, copied
from tests.records.kernel_forms import BUILT_FORMS, FORMS
from tests.tools.image.metadata_stories import metadata_stories

_forms = pytest.mark.parametrize("form", FORMS)
_TOPIC: Final = UUID(int=1 << 70)
_UUIDS: Final = [UUID(int=number) for number in range(5, 9)]


def teach(shaped: ShapedChanges, value: bytes) -> None:
    """Teach a record's shape, if it has one, as its decoder would."""
    found = decoder(value[:FRAME_SIZE])
    if found is not None and isinstance(found.read, ShapedReader):
        with contextlib.suppress(*NOT_USUAL):
            shaped.learn(found.name, Shape(message_type(found.name).schema, value[2], value, FRAME_SIZE))


def apply(image: ClusterImage, batch: MetadataBatch, shaped: ShapedChanges) -> None:
    """Advance an image with some shapes learned, and no others."""
    with mock.patch.object(cluster_image, "SHAPED_CHANGES", shaped):
        image.apply(batch)


def written(name: str, version: int, /, **fields: Any) -> bytes:
    """A record's value."""
    kind = message_type(name)
    return bytes([1, kind.api_key or 0, version]) + kind.write(fields, version=version)


def partition(version: int = 2, **fields: Any) -> bytes:
    """A PartitionRecord."""
    usual = {"partitionId": 3, "topicId": _TOPIC, "replicas": [1, 2], "isr": [1, 2], "leader": 1}
    return written("PartitionRecord", version, **(usual | fields))


def change(version: int = 2, **fields: Any) -> bytes:
    """A PartitionChangeRecord."""
    return written("PartitionChangeRecord", version, partitionId=3, topicId=_TOPIC, **fields)


@st.composite
def _with_mistakes(draw: st.DrawFn, values: list[bytes | None]) -> list[bytes | None]:
    """The values, and after some of them again with another byte, shorter or longer."""
    found: list[bytes | None] = []
    for value in values:
        found.append(value)
        if value and draw(st.integers(0, 3)) == 0:
            changed = bytearray(value)
            changed[draw(st.integers(0, len(value) - 1))] = draw(st.sampled_from([0, 1, 2, 3, 4, 127, 128, 255]))
            found.append(draw(st.sampled_from([bytes(changed), bytes(changed), value[:-1], value + b"\0", None])))
    return found


@given(metadata_stories(), st.data())
def test_learned_shapes_change_no_state(
    story: tuple[list[MetadataBatch], list[list[MetadataRecord]]], data: st.DataObject
) -> None:
    """Whatever was learned before, also from other records: entries, their order and refusals are the same."""
    batches = [batch._replace(values=data.draw(_with_mistakes(list(batch.values)))) for batch in story[0]]
    plain, fast = ClusterImage(), [(ShapedChanges(form), ClusterImage()) for form in BUILT_FORMS]
    taught = [value for batch in batches for value in batch.values if value]
    taught = taught[data.draw(st.integers(0, len(taught))) :]
    for batch in batches:
        apply(plain, batch, ShapedChanges())
        for shaped, image in fast:
            for value in taught:
                teach(shaped, value)
            apply(image, batch, shaped)
            assert image == plain
            assert repr(image.tables) == repr(plain.tables)


@_forms
@pytest.mark.parametrize("version", [0, 1, 2])
def test_usual_records_of_partitions_are_replayed_by_their_shapes(form: Any, version: int) -> None:
    """All of them, and what they make is the same."""
    directories: dict[str, Any] = {"directories": _UUIDS[:2]} if version else {}
    elr: dict[str, Any] = {"eligibleLeaderReplicas": [2], "lastKnownElr": []} if version == 2 else {}
    values = [
        partition(version),
        partition(version, partitionId=4, leader=-1, removingReplicas=[2], addingReplicas=[3, 4], **directories, **elr),
        change(version, leader=2),
        change(version, isr=[1]),
        change(version, isr=[], leader=-1, removingReplicas=[], addingReplicas=[7]),
        change(version, **elr),
        change(version),
        written("NoOpRecord", 0),
    ]
    shaped, plain, fast = ShapedChanges(form), ClusterImage(), ClusterImage()
    first = MetadataBatch(0, 1, 1, 1, [written("TopicRecord", 0, name="t", topicId=_TOPIC)])
    for value in values:
        teach(shaped, value)
    for image, learned in ((plain, ShapedChanges()), (fast, shaped)):
        apply(image, first, learned)
    assert shaped.apply(fast.tables, [*values], 0) == len(values)
    apply(plain, MetadataBatch(1, 1 + len(values), 1, 1, values), ShapedChanges())
    assert fast.tables == plain.tables
    assert plain.refusals == []


class _Counting(ShapedChanges):
    """Knows how many records each of its calls replayed."""

    def __init__(self, form: Any) -> None:
        super().__init__(form)
        self.counts: list[int] = []

    def apply(self, tables: Tables, values: list[bytes | None], first: int) -> int:
        reached = super().apply(tables, values, first)
        self.counts.append(reached - first)
        return reached


@contextlib.contextmanager
def _as_chosen(shaped: ShapedChanges, *, is_compiled: bool) -> Iterator[None]:
    """Let decoders be made anew, which teach some shapes if the kernel is compiled."""
    decoder.cache_clear()
    with (
        mock.patch.object(replay, "IS_COMPILED", is_compiled),
        mock.patch.object(replay, "SHAPED_CHANGES", shaped),
        mock.patch.object(cluster_image, "SHAPED_CHANGES", shaped),
    ):
        try:
            yield
        finally:
            decoder.cache_clear()


@_forms
@pytest.mark.parametrize("is_compiled", [True, False])
def test_an_image_learns_shapes_if_the_kernel_is_compiled(form: Any, is_compiled: bool) -> None:
    """Then one call replays all records after those that it took to learn; else each is replayed for itself."""
    first = [written("TopicRecord", 0, name="t", topicId=_TOPIC), partition(leaderEpoch=0)]
    changes = [change(leader=number % 2 + 1, isr=[1, 2]) for number in range(200)]
    shaped, image, plain = _Counting(form), ClusterImage(), ClusterImage()
    with _as_chosen(shaped, is_compiled=is_compiled):
        image.apply(MetadataBatch(0, 202, 1, 1, first + changes))
    apply(plain, MetadataBatch(0, 202, 1, 1, first + changes), ShapedChanges())
    assert image == plain
    assert image.tables.partitions[_TOPIC][3].leader_epoch == 200
    *before, last = shaped.counts
    assert not any(before)
    assert last == (202 - len(before) if is_compiled else 0)
    assert (last > 100) is is_compiled
    assert vars(replay)["IS_COMPILED"] is kernel_choice.IS_COMPILED
    assert vars(cluster_image)["SHAPED_CHANGES"] is replay.SHAPED_CHANGES


RARE: Final = {
    "replicas": change(replicas=[1, 3]),
    "no replicas": change(replicas=[]),
    "directories": change(directories=_UUIDS[:2]),
    "no directories": change(directories=[]),
    "a state": change(leaderRecoveryState=1),
    "a leader that means none": change(leader=77).replace((77).to_bytes(4), (-2).to_bytes(4, signed=True)),
    "another partition": change(leader=2).replace(b"\0\0\0\3", b"\0\0\0\4", 1),
    "another topic": change(leader=2).replace(_TOPIC.bytes, _UUIDS[0].bytes),
    "a registration with a state": partition(leaderRecoveryState=1),
    "a registration with fewer directories": partition(directories=_UUIDS[:1]),
    "a registration with more directories": partition(directories=_UUIDS[:3]),
    "a registration with another topic": partition(topicId=_UUIDS[0]),
    "a record without an effect but with an unknown tag": written("NoOpRecord", 0)[:-1] + b"\1\0\1x",
    "another type": written("ConfigRecord", 0, resourceType=2, resourceName="t", name="n", value="v"),
}


@_forms
@pytest.mark.parametrize("name", RARE)
def test_rare_records_are_left_to_the_general_replay(form: Any, name: str) -> None:
    """Those whose effect does not follow from the shape, or that contradict the state."""
    shaped, image = ShapedChanges(form), ClusterImage()
    apply(image, MetadataBatch(0, 1, 1, 1, [written("TopicRecord", 0, name="t", topicId=_TOPIC), partition()]), shaped)
    before = repr(image.tables)
    for value in (partition(), change(leader=2), change(isr=[]), written("NoOpRecord", 0), RARE[name]):
        teach(shaped, value)
    assert shaped.apply(image.tables, [RARE[name]], 0) == 0
    assert repr(image.tables) == before


@_forms
def test_a_topic_that_is_removed_or_made_anew_takes_its_partitions_along(form: Any) -> None:
    """A change of one of its partitions is refused afterwards; copied tables change for themselves."""
    topic, gone = written("TopicRecord", 0, name="t", topicId=_TOPIC), written("RemoveTopicRecord", 0, topicId=_TOPIC)
    shaped, image = ShapedChanges(form), ClusterImage()
    for value in (partition(), change(leader=2)):
        teach(shaped, value)
    apply(image, MetadataBatch(0, 3, 1, 1, [topic, partition(), change(leader=2)]), shaped)
    copy = ClusterImage(copied(image.tables), read_to=3)
    for later in ([topic, change(leader=2)], [partition(), change(leader=2), gone, change(leader=2), partition()]):
        count = len(image.refusals)
        apply(image, MetadataBatch(image.read_to, image.read_to + len(later), 1, 1, later), shaped)
        assert len(image.refusals) == count + (1 if gone not in later else 2)
    assert image.tables.partitions == {}
    assert shaped.apply(copy.tables, [change(leader=3)], 0) == 1
    assert copy.tables.partitions[_TOPIC][3].leader == 3
