# SPDX-License-Identifier: Apache-2.0
"""Which function replays which type of record, and the decoding of records for them.

Source: MetadataDelta#replay, MetadataRecordSerde.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from raftlog.errors import UnsupportedVersionError
from raftlog.records.kernel_choice import IS_COMPILED
from raftlog.records.messages.metadata import read_metadata_record
from raftlog.records.messages.schema import message_types
from raftlog.tools.image import nodes, settings, topics
from raftlog.tools.image.shaped_changes import ShapedChanges
from raftlog.tools.image.shaped_reader import ShapedReader, has_shapes
from raftlog.tools.image.tables import Tables
from raftlog.tools.image.values_reader import ValuesReader, compile_values_reader

Replay = Callable[[Tables, Mapping[str, Any]], None]
"""Changes tables as a record says, by its message. A ``ReplayRefusedError`` means that nothing was changed."""

BEGIN, END, ABORT = "BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"

REPLAYS: Final[Mapping[str, Replay | None]] = {
    "RegisterBrokerRecord": nodes.register_broker,
    "UnregisterBrokerRecord": nodes.unregister_broker,
    "TopicRecord": topics.topic,
    "PartitionRecord": topics.partition,
    "ConfigRecord": topics.config,
    "PartitionChangeRecord": topics.change_partition,
    "FenceBrokerRecord": nodes.fence_broker,
    "UnfenceBrokerRecord": nodes.unfence_broker,
    "RemoveTopicRecord": topics.remove_topic,
    "DelegationTokenRecord": settings.delegation_token,
    "UserScramCredentialRecord": settings.scram_credential,
    "FeatureLevelRecord": settings.feature_level,
    "ClientQuotaRecord": settings.client_quota,
    "ProducerIdsRecord": settings.producer_ids,
    "BrokerRegistrationChangeRecord": nodes.change_broker,
    "AccessControlEntryRecord": settings.acl,
    "RemoveAccessControlEntryRecord": settings.remove_acl,
    "NoOpRecord": settings.no_effect,
    "ZkMigrationStateRecord": settings.no_effect,
    "RemoveUserScramCredentialRecord": settings.remove_scram_credential,
    BEGIN: None,
    END: None,
    ABORT: None,
    "RemoveDelegationTokenRecord": settings.remove_delegation_token,
    "RegisterControllerRecord": nodes.register_controller,
    "ClearElrRecord": topics.clear_elr,
    "UnregisterControllerRecord": nodes.unregister_controller,
}
"""By the name of the type's schema. None: the record bounds a transaction, and has no effect of its own."""

FRAME_SIZE: Final = 3
"""Bytes before the message of a record: frame version, type and version take one each in all records that are known."""
SHAPED_CHANGES: Final = ShapedChanges()
"""Replays records of the shapes that any decoder has learned."""


class Decoder(NamedTuple):
    """How the records of one type and version are read and replayed.

    Attributes:
        name: of the type's schema.
        read: reads the message if it is a usual one, as ``values_reader`` says.
        replay: its effect; None if the record bounds a transaction.
    """

    name: str
    read: ValuesReader
    replay: Replay | None


@functools.lru_cache(maxsize=512)
def decoder(frame: bytes) -> Decoder | None:
    """Return the decoder for records that start with a frame; None if it is not one of a type and version known.

    Args:
        frame: the first ``FRAME_SIZE`` bytes of the record's value.
    """
    if len(frame) < FRAME_SIZE or frame[0] != 1:
        return None
    for kind in message_types("metadata-records").values():
        if kind.api_key == frame[1] and frame[2] in kind.versions:
            read = compile_values_reader(kind.schema, frame[2])
            if has_shapes(kind.schema, frame[2]):
                learned = functools.partial(SHAPED_CHANGES.learn, kind.name) if IS_COMPILED else None
                read = ShapedReader(kind.schema, frame[2], read, FRAME_SIZE, learned)
            return Decoder(kind.name, read, REPLAYS[kind.name])
    return None


def read_any(value: bytes | None) -> tuple[str, Replay | None, Mapping[str, Any]]:
    """Read a record of which ``decoder`` knows nothing, or which it cannot read: return name, effect and message.

    A version above the highest known one is an error here: its fields may mean what is not known.

    Raises:
        InvalidRecordError: the frame or the message breaks the format, or bytes are left over.
        UnsupportedVersionError: the type or the version is not known.
    """
    record = read_metadata_record(value)
    if record.version not in record.type.versions:
        problem = f"{record.type_name} has no version {record.version}"
        raise UnsupportedVersionError(problem, "message-version")
    return record.type.name, REPLAYS[record.type.name], record.message
