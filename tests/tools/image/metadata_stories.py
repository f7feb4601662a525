# SPDX-License-Identifier: Apache-2.0
"""Sequences of metadata records about few things, so that they meet: made topics are removed, brokers are fenced."""

from typing import Any, Final
from uuid import UUID

from hypothesis import strategies as st

from raftlog.records.messages.metadata import MetadataRecord, metadata_record, write_metadata_record
from raftlog.records.messages.schema import message_types
from raftlog.tools.image.cluster_image import MetadataBatch

_IDS = [UUID(int=(1 << 70) + number) for number in range(3)]
_NAMES = ["a", "b", ""]
_ids = st.sampled_from(_IDS)
_names = st.sampled_from(_NAMES)
_nodes = st.integers(1, 3)
_node_lists = st.lists(_nodes, max_size=3, unique=True)
_uuid_lists = st.lists(st.sampled_from([*_IDS, UUID(int=0), UUID(int=1)]), max_size=3)
_texts = {
    "entityType": st.sampled_from(["user", "client-id"]),
    "entityName": st.sampled_from(["a", "b", None]),
    "value": st.sampled_from(["1", "2", None]),
    "rack": st.sampled_from(["r", None]),
    "reason": st.none(),
    "owner": st.sampled_from(["User:a", "User:b", "User:", "a"]),
    "requester": st.sampled_from(["User:a", "User:b"]),
    "host": st.sampled_from(["h", ""]),
}
_numbers = {
    "resourceType": st.sampled_from([2, 4]),
    "mechanism": st.sampled_from([0, 1, 2, 3]),
    "leader": st.sampled_from([-2, -1, 1, 2, 3]),
    "leaderRecoveryState": st.sampled_from([-1, 0, 1, 2]),
    "fenced": st.sampled_from([-1, 0, 1, 1, -1, 2]),
    "inControlledShutdown": st.sampled_from([0, 1, 1, 2]),
    "featureLevel": st.integers(0, 2),
    "partitionId": st.integers(0, 1),
    "brokerEpoch": st.integers(1, 2),
    "epoch": st.integers(1, 2),
    "port": st.integers(0, 65535),
    "nextProducerId": st.integers(0, 10_000),
}


def _value(kind: str, name: str, field: Any) -> st.SearchStrategy[Any]:
    """A value for a field of the schema, from few; listeners nearly always have a name."""
    if field.struct is not None:
        items = st.fixed_dictionaries({each.name: _value(kind, each.name, each) for each in field.struct.fields})
        if name == "endPoints":
            names = st.sampled_from([*"abcdefghi", ""])
            items = st.tuples(items, names).map(lambda drawn: drawn[0] | {"name": drawn[1]})
        return st.lists(items, max_size=2) if field.is_array else items
    if field.is_array:
        if field.type == "uuid":
            found: st.SearchStrategy[Any] = _uuid_lists
        else:
            found = _node_lists if field.type == "int32" else st.lists(_texts["requester"], max_size=2, unique=True)
        return st.none() | found if field.default is None else found
    if kind == "PartitionRecord" and name == "leaderRecoveryState":
        return st.sampled_from([0, 0, 0, 1, 2])
    if field.type == "bool":
        return st.booleans()
    by_type: dict[str, st.SearchStrategy[Any]] = {
        "uuid": _ids,
        "string": _texts.get(name, _names),
        "bytes": st.sampled_from([b"", b"s"]),
        "float64": st.sampled_from([0.0, 1.5]),
    }
    return by_type[field.type] if field.type in by_type else _numbers.get(name, _nodes)


@st.composite
def metadata_records(draw: st.DrawFn, kinds: tuple[str, ...] = ()) -> MetadataRecord:
    """A record of any type, in its highest version or in one that has all its fields."""
    types = message_types("metadata-records")
    name = draw(st.sampled_from(kinds or tuple(types)))
    fields = types[name].schema.struct.fields
    message = {field.name: draw(_value(name, field.name, field)) for field in fields}
    return metadata_record(name, message)


_USUAL: Final = ("TopicRecord", "PartitionRecord", "PartitionChangeRecord", "ConfigRecord", "RegisterBrokerRecord")
_CHANGES: Final = ("PartitionChangeRecord", "PartitionChangeRecord", "BrokerRegistrationChangeRecord", "ClearElrRecord")


def batches_of(drawn: list[list[MetadataRecord]]) -> list[MetadataBatch]:
    """Batches of the records, one after the other; one without records is of one control record."""
    batches, offset = [], 0
    for number, records in enumerate(drawn):
        values = [write_metadata_record(record) for record in records]
        batches.append(MetadataBatch(offset, offset + max(len(values), 1), 1 + number // 3, 1000 + number, values))
        offset += max(len(values), 1)
    return batches


def _record(kind: str, /, **fields: Any) -> MetadataRecord:
    return metadata_record(kind, message_types("metadata-records")[kind].default() | fields)


def _partition(topic_id: UUID, number: int) -> MetadataRecord:
    nodes = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "directories": [_IDS[0], _IDS[1]] if number else []}
    return _record("PartitionRecord", topicId=topic_id, partitionId=number, leaderEpoch=0, partitionEpoch=0, **nodes)


_BEGINNING: Final = [
    [_record("TopicRecord", name=name, topicId=topic_id) for name, topic_id in zip("abc", _IDS, strict=True)],
    [_partition(topic_id, number) for topic_id in _IDS for number in (0, 1)],
    [_record("RegisterBrokerRecord", brokerId=number, brokerEpoch=1) for number in (1, 2, 3)],
]
"""Things that changes of records are about."""


@st.composite
def metadata_stories(draw: st.DrawFn) -> tuple[list[MetadataBatch], list[list[MetadataRecord]]]:
    """Batches of the log, and their records; a batch without any is one of control records.

    Half of them begin with things that later records change; usual records prevail in the others.
    """
    begins = draw(st.booleans())
    kinds = _CHANGES if begins else _USUAL
    record = st.one_of(metadata_records(kinds), metadata_records())
    drawn: list[list[MetadataRecord]] = draw(st.lists(st.lists(record, max_size=4), max_size=12))
    drawn = [*_BEGINNING, *drawn] if begins else drawn
    return batches_of(drawn), drawn
