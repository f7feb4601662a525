# SPDX-License-Identifier: Apache-2.0
"""Metadata logs with one record that controllers of Kafka die of, and their neighbours that load.

The first offset is that of a control batch, as in each log of Kafka. Records are in versions that 3.9 reads, and
``metadata.version`` is one that all releases know, unless that is what a log is about.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from raftlog.records.messages.metadata import MetadataRecord, metadata_record, write_metadata_record
from raftlog.records.messages.releases import METADATA_VERSIONS
from raftlog.records.messages.schema import message_types
from raftlog.tools.image.cluster_image import MetadataBatch

Record = MetadataRecord | bytes
OLDER = ("3.9", "4.0", "4.1", "4.2", "4.3")
ALL = (*OLDER, "4.4")
OLD_VERSIONS: Final = {"RegisterBrokerRecord": 3, "BrokerRegistrationChangeRecord": 2}


class Poisoned(NamedTuple):
    """A log, and what becomes of it.

    Attributes:
        batches: the records of each batch after the control batch at offset 0.
        offset: where the releases die: of the record, or the end of the log.
        rule: of which they die; empty if all load it.
        releases: those that die.
    """

    batches: Sequence[Sequence[Record]]
    offset: int = -1
    rule: str = ""
    releases: tuple[str, ...] = ALL

    @property
    def story(self) -> list[MetadataBatch]:
        """The batches, the control batch first."""
        found, offset = [MetadataBatch(0, 1, 1, 1000)], 1
        for number, records in enumerate(self.batches):
            values = [each if isinstance(each, bytes) else write_metadata_record(each) for each in records]
            found.append(MetadataBatch(offset, offset + len(values), 1, 2000 + number, values))
            offset += len(values)
        return found


def made(kind: str, /, **fields: Any) -> MetadataRecord:
    """A record in a version that 3.9 reads; fields that are not given have their defaults."""
    return metadata_record(
        kind, message_types("metadata-records")[kind].default() | fields, version=OLD_VERSIONS.get(kind)
    )


def version(name: str) -> MetadataRecord:
    """A level of ``metadata.version``."""
    return feature("metadata.version", METADATA_VERSIONS[name])


def feature(name: str, level: int) -> MetadataRecord:
    """A level of a feature."""
    return made("FeatureLevelRecord", name=name, featureLevel=level)


def broker(number: int, *directories: UUID, epoch: int = 5, protocol: int = 0, listener: str = "L") -> MetadataRecord:
    """A registration."""
    endpoint = {"name": listener, "host": "h", "port": 9, "securityProtocol": protocol}
    return made(
        "RegisterBrokerRecord", brokerId=number, brokerEpoch=epoch, endPoints=[endpoint], logDirs=list(directories)
    )


def topic(name: str, number: int) -> MetadataRecord:
    """A topic."""
    return made("TopicRecord", name=name, topicId=UUID(int=number))


def acl(number: int, name: str = "t") -> MetadataRecord:
    """An ACL."""
    what = {"resourceType": 2, "patternType": 3, "operation": 3, "permissionType": 3}
    return made(
        "AccessControlEntryRecord", id=UUID(int=number), resourceName=name, principal="User:a", host="*", **what
    )


def partition(**fields: Any) -> MetadataRecord:
    """Partition 0 of topic 1."""
    nodes = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0}
    return made("PartitionRecord", **({"partitionId": 0, "topicId": UUID(int=1)} | nodes | fields))


def changed(**fields: Any) -> MetadataRecord:
    """A change of a partition of topic 1."""
    return made("PartitionChangeRecord", **({"partitionId": 0, "topicId": UUID(int=1)} | fields))


def _removed_acl(number: int) -> MetadataRecord:
    return made("RemoveAccessControlEntryRecord", id=UUID(int=number))


def _credential(kind: str, name: str) -> MetadataRecord:
    return made(kind, name=name, mechanism=1)


def _change(**fields: Any) -> MetadataRecord:
    return made("BrokerRegistrationChangeRecord", **({"brokerId": 1, "brokerEpoch": 5} | fields))


def _controller(number: int, protocol: int) -> MetadataRecord:
    endpoint = {"name": "L", "host": "h", "port": 9, "securityProtocol": protocol}
    return made("RegisterControllerRecord", controllerId=number, endPoints=[endpoint])


def _broker_config(name: str, value: str | None = "1") -> MetadataRecord:
    return made("ConfigRecord", resourceType=4, resourceName=name, name="log.cleaner.threads", value=value)


V = version("3.7-IV4")
D, E = UUID(int=901), UUID(int=902)
BEGIN, END, ABORT = (
    made("BeginTransactionRecord", name="t"),
    made("EndTransactionRecord"),
    made("AbortTransactionRecord"),
)
_GONE = made("RemoveTopicRecord", topicId=UUID(int=1))
_IDS = made("ProducerIdsRecord", brokerId=1, brokerEpoch=5, nextProducerId=1000)

POISONED: Final = {
    "two topics of a name": Poisoned([[V], [topic("a", 1)], [topic("b", 2), topic("a", 3)]], 4, "duplicate-topic"),
    "a topic twice": Poisoned([[V], [topic("a", 1)], [topic("a", 1)]], 3, "duplicate-topic"),
    "a topic again after its removal": Poisoned([[V], [topic("a", 1)], [_GONE], [topic("a", 3)]]),
    "a partition of no topic": Poisoned([[V], [partition()]], 2, "contradiction"),
    "a change of no partition": Poisoned([[V], [topic("a", 1)], [changed(isr=[1])]], 3, "contradiction"),
    "a change of another partition": Poisoned(
        [[V], [topic("a", 1), partition()], [changed(partitionId=1)]], 4, "contradiction"
    ),
    "a topic removed twice": Poisoned([[V], [topic("a", 1)], [_GONE], [_GONE]], 4, "contradiction"),
    "directories of too few replicas": Poisoned([[V], [topic("a", 1), partition(directories=[D])]], 3, "contradiction"),
    "directories of all replicas": Poisoned([[V], [topic("a", 1), partition(directories=[D, E])]]),
    "an unknown recovery state": Poisoned([[V], [topic("a", 1), partition(leaderRecoveryState=2)]], 3, "contradiction"),
    "fencing no broker": Poisoned([[V], [made("FenceBrokerRecord", id=1, epoch=5)]], 2, "contradiction"),
    "fencing a broker": Poisoned([[V], [broker(1)], [made("FenceBrokerRecord", id=1, epoch=5)]]),
    "unfencing another epoch": Poisoned(
        [[V], [broker(1)], [made("UnfenceBrokerRecord", id=1, epoch=6)]], 3, "contradiction"
    ),
    "a change of another epoch": Poisoned([[V], [broker(1)], [_change(brokerEpoch=4)]], 3, "contradiction"),
    "a change to fenced 2": Poisoned([[V], [broker(1)], [_change(fenced=2)]], 3, "contradiction"),
    "unregistering no broker": Poisoned(
        [[V], [made("UnregisterBrokerRecord", brokerId=1, brokerEpoch=5)]], 2, "broker-epoch"
    ),
    "unregistering another epoch": Poisoned(
        [[V], [broker(1)], [made("UnregisterBrokerRecord", brokerId=1, brokerEpoch=6)]], 3, "broker-epoch"
    ),
    "unregistering a broker": Poisoned(
        [[V], [broker(1, D)], [made("UnregisterBrokerRecord", brokerId=1, brokerEpoch=5)], [broker(2, D)]]
    ),
    "a directory of two brokers": Poisoned([[V], [broker(1, D)], [broker(2, E, D)]], 3, "directory-owner"),
    "a directory that changes its broker": Poisoned(
        [[V], [broker(1, D), broker(2, E)], [_change(logDirs=[D, E])]], 4, "directory-owner"
    ),
    "a directory twice in a registration": Poisoned([[V], [broker(1, D, D)], [broker(1, D)]], 3, "directory-owner"),
    "a broker registered again": Poisoned([[V], [broker(1, D)], [broker(1, E, D, epoch=6)], [broker(1, D, epoch=7)]]),
    "an unknown security protocol": Poisoned(
        [[V], [broker(1, protocol=3), broker(2, protocol=4)]], 3, "security-protocol"
    ),
    "an unknown security protocol of a controller": Poisoned(
        [[V], [_controller(1, 3), _controller(2, 4)]], 3, "security-protocol"
    ),
    "a negative security protocol of a controller": Poisoned([[V], [_controller(1, -1)]], 2, "security-protocol"),
    "an unknown type": Poisoned([[V], [topic("a", 1), b"\x01\x63\x00"]], 3, "unknown-record"),
    "an unknown type after a duplicate": Poisoned(
        [[V], [V, topic("a", 1), topic("a", 2), b"\x01\x63\x00"]], 5, "unknown-record"
    ),
    "a record that ends early": Poisoned([[V], [b"\x01\x02\x00\x02"]], 2, "unreadable-record"),
    "a record with a byte too many": Poisoned([[V, write_metadata_record(V) + b"x"]], 2, "unreadable-record"),
    "frame version 0": Poisoned([[V], [b"\x00\x02\x00"]], 2, "unreadable-record"),
    "a version that no release knows, of a flat record": Poisoned([[V], [b"\x01\x14\x07\x00"]]),
    "metadata.version 99": Poisoned([[V], [feature("metadata.version", 99)]], 2, "feature-level"),
    "metadata.version of 4.3": Poisoned([[version("4.3-IV0")]], 1, "feature-level", ("3.9", "4.0", "4.1", "4.2")),
    "metadata.version of 4.0": Poisoned([[version("4.0-IV3")]], 1, "feature-level", ("3.9",)),
    "an unknown feature": Poisoned([[V], [feature("x", 0), feature("x", 1)]], 3, "feature-level"),
    "kraft.version 1 as a record": Poisoned([[V], [feature("kraft.version", 1)]]),
    "kraft.version 2 as a record": Poisoned([[V], [feature("kraft.version", 2)]], 2, "feature-level"),
    "share.version 2": Poisoned([[V], [feature("share.version", 2)]], 2, "feature-level", OLDER),
    "streams.version 1": Poisoned([[V], [feature("streams.version", 1)]], 2, "feature-level", ("3.9", "4.0", "4.1")),
    "a cordoned directory": Poisoned(
        [[V], [metadata_record("RegisterBrokerRecord", broker(1, D).message, version=4)]],
        2,
        "unknown-version",
        ("3.9", "4.0", "4.1", "4.2"),
    ),
    "a cleared ELR": Poisoned([[V], [made("ClearElrRecord", topicName="")]], 2, "unknown-record", ("3.9",)),
    "a controller unregistered": Poisoned(
        [[V], [made("RegisterControllerRecord", controllerId=7)], [made("UnregisterControllerRecord", controllerId=7)]],
        3,
        "unknown-record",
        OLDER,
    ),
    "a transaction in another": Poisoned([[V], [BEGIN], [BEGIN]], 3, "transaction-bounds"),
    "the end of no transaction": Poisoned([[V], [END]], 2, "transaction-bounds"),
    "the abortion of no transaction": Poisoned([[V], [BEGIN, END], [ABORT]], 4, "transaction-bounds"),
    "a duplicate in a transaction that is aborted": Poisoned(
        [[V], [BEGIN], [topic("a", 1), topic("a", 2)], [ABORT]], 4, "duplicate-topic"
    ),
    "a topic in a transaction that is aborted": Poisoned([[V], [BEGIN], [topic("a", 1)], [ABORT], [topic("a", 2)]]),
    "a topic in a transaction that ended": Poisoned(
        [[V], [BEGIN], [topic("a", 1)], [END], [topic("a", 2)]], 5, "duplicate-topic"
    ),
    "an open transaction": Poisoned([[version("3.6-IV1")], [BEGIN], [topic("a", 1)]]),
    "an open transaction of an older version": Poisoned(
        [[version("3.6-IV0")], [BEGIN], [topic("a", 1)]], 4, "open-transaction"
    ),
    "a version in a transaction that is open": Poisoned([[BEGIN, V]], 3, "no-metadata-version", ALL[1:]),
    "no metadata.version": Poisoned([[topic("a", 1)]], 2, "no-metadata-version", ALL[1:]),
    "no record": Poisoned([]),
    "producer ids again": Poisoned([[V], [_IDS], [_IDS]], 3, "producer-ids"),
    "no credential": Poisoned([[V], [_credential("RemoveUserScramCredentialRecord", "a")]], 2, "scram-credential"),
    "a credential removed": Poisoned(
        [[V], [_credential("UserScramCredentialRecord", "a")], [_credential("RemoveUserScramCredentialRecord", "a")]]
    ),
    "no ACL": Poisoned([[V], [_removed_acl(1)]], 2, "contradiction"),
    "two ACLs that say the same": Poisoned(
        [[V], [acl(1), acl(2)], [_removed_acl(1)], [_removed_acl(2)]], 5, "acl-content"
    ),
    "two ACLs that differ": Poisoned([[V], [acl(1), acl(2, "u")], [_removed_acl(1)], [_removed_acl(2)]]),
    "a config of a broker without a number": Poisoned([[V], [_broker_config("one")]], 2, "broker-config", ALL[1:]),
    "a config of a broker above 2147483647": Poisoned(
        [[V], [_broker_config("2147483648")]], 2, "broker-config", ALL[1:]
    ),
    "a config of a broker with 5,000 digits": Poisoned(
        [[V], [_broker_config("1" * 5000)]], 2, "broker-config", ALL[1:]
    ),
    "a config of a broker with 11 digits": Poisoned(
        [[V], [_broker_config("-" + "1" * 11)]], 2, "broker-config", ALL[1:]
    ),
    "configs of a broker with 5,000 zeros": Poisoned(
        [[V], [_broker_config("0" * 5000 + "1"), _broker_config("-" + "0" * 5000), _broker_config("+2147483647")]]
    ),
    "a config of a broker that is a sign": Poisoned([[V], [_broker_config("-")]], 2, "broker-config", ALL[1:]),
    "configs of brokers": Poisoned([[V], [_broker_config("2147483647"), _broker_config("")], [_broker_config("-1")]]),
    "ZooKeeper migration state 5": Poisoned(
        [[V], [made("ZkMigrationStateRecord", zkMigrationState=5)]], 2, "zk-migration-state", ("3.9",)
    ),
    "ZooKeeper migration state 3": Poisoned([[V], [made("ZkMigrationStateRecord", zkMigrationState=3)]]),
    "ZooKeeper migration state 4": Poisoned(
        [[V], [made("ZkMigrationStateRecord", zkMigrationState=4)]], 3, "zk-migration-state", ("3.9",)
    ),
    "ZooKeeper migration state 4 before 3.4": Poisoned(
        [[version("3.3-IV3")], [made("ZkMigrationStateRecord", zkMigrationState=4)]]
    ),
    "a token of nobody": Poisoned(
        [[V], [made("DelegationTokenRecord", owner="a", requester="User:a")]], 2, "contradiction"
    ),
    "ELRs of no topic": Poisoned(
        [[V], [topic("a", 1), made("ClearElrRecord", topicName="b")]], 3, "contradiction", ALL[1:]
    ),
    "ELRs of a topic whose id another name took": Poisoned(
        [[V], [topic("a", 1)], [topic("b", 1)], [_GONE], [made("ClearElrRecord", topicName="a")]],
        5,
        "contradiction",
        ALL[1:],
    ),
}
"""By what is wrong, or is not."""
