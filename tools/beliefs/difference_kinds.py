# SPDX-License-Identifier: Apache-2.0
"""The kinds of differences between brokers' directories and the metadata, and what Kafka does about each.

Source: LogManager#isStrayKraftReplica, LogManager#loadLog, LogManager#recoverAbandonedFutureLogs, ReplicaManager,
MetaPropertiesEnsemble#verify, ClusterControlManager#registerBroker (KIP-858, KIP-966), as of 4.3.
"""

from typing import Final, NamedTuple


class DifferenceKind(NamedTuple):
    """A kind of difference.

    Attributes:
        name: its id, as output has it.
        follows: what Kafka does when it starts, or what the difference shows.
        is_harmful: whether data would be set aside or be lost, a broker would not start, or one side is older.
    """

    name: str
    follows: str
    is_harmful: bool = True


_STRAY: Final = "Kafka renames the directory to -stray when the broker starts: its records are no longer served."

FOREIGN_CLUSTER: Final = DifferenceKind(
    "foreign-cluster", "The directory is of another cluster: a broker with it does not start. It is not compared."
)
NO_IDENTITY: Final = DifferenceKind(
    "no-identity", "No meta.properties says whose directory it is: a broker with it does not start. It is not compared."
)
DIRECTORY_TWICE: Final = DifferenceKind(
    "directory-twice", "Two directories of the broker have one directory.id: it does not start with both."
)
DIRECTORY_OF_OTHER: Final = DifferenceKind(
    "directory-of-other",
    "Another broker has this directory.id. The controller refuses to register a directory that another broker has"
    " registered (InvalidRegistrationException): this broker does not start.",
)
METADATA_AHEAD: Final = DifferenceKind(
    "metadata-ahead",
    "The broker's own metadata log has records that the given one has not. Compare with it: raftlog state DIR"
    " --against ...",
)
UNKNOWN_BROKER: Final = DifferenceKind(
    "unknown-broker", "The metadata has no such broker. It registers when it starts.", is_harmful=False
)
UNREGISTERED_DIRECTORY: Final = DifferenceKind(
    "unregistered-directory",
    "The broker's registration does not name this directory. It registers the directory when it starts.",
    is_harmful=False,
)
REGISTERED_LATER: Final = DifferenceKind(
    "registered-later",
    "The broker registered after this state: the metadata is older than the directory, and knows nothing of what was"
    " made or changed meanwhile.",
)
REGISTERED_EARLIER: Final = DifferenceKind(
    "registered-earlier",
    "The broker has registered again since this directory was shut down: the directory is an older copy, or the broker"
    " did not get to open it. Records that the metadata takes for in sync may be missing.",
)
BROKER_NOT_GIVEN: Final = DifferenceKind(
    "broker-not-given", "No directory of this broker was given: nothing is known of its replicas.", is_harmful=False
)
DIRECTORY_NOT_GIVEN: Final = DifferenceKind(
    "directory-not-given",
    "The broker's registration names a directory that was not given, or is offline: replicas there are not judged.",
    is_harmful=False,
)

UNKNOWN_TOPIC: Final = DifferenceKind("unknown-topic", f"No topic of the metadata has this id. {_STRAY}")
RECREATED_TOPIC: Final = DifferenceKind(
    "recreated-topic",
    f"The metadata has another topic of this name. {_STRAY} The partition of the other topic begins empty beside it.",
)
UNKNOWN_PARTITION: Final = DifferenceKind("unknown-partition", f"The topic has fewer partitions. {_STRAY}")
NOT_ASSIGNED: Final = DifferenceKind("not-assigned", f"The metadata assigns no replica to this broker. {_STRAY}")
NO_TOPIC_ID: Final = DifferenceKind("no-topic-id", f"There is no partition.metadata. {_STRAY}")
OTHER_NAME: Final = DifferenceKind(
    "other-name",
    "The id is that of a topic of another name. The directory stays, under a name that nothing asks for, and the"
    " replica of the topic begins empty.",
)
SWAPPED_NAME: Final = DifferenceKind(
    "swapped-name",
    "The id is that of another topic, and the directory has the name of another replica of this broker, whose log Kafka"
    " refuses to open (InconsistentTopicIdException). Rename the directory back to the topic that has its id.",
)
UNREAD: Final = DifferenceKind(
    "unread",
    "A file there is damaged or cannot be read: what it says was not compared.",
    is_harmful=False,
)
STRAY_WANTED: Final = DifferenceKind(
    "stray-wanted",
    "Kafka has set aside a replica that the metadata assigns to this broker. It does not take it back by itself:"
    " rename the directory to the partition's name while the broker is down.",
)
DELETED_WANTED: Final = DifferenceKind(
    "deleted-wanted",
    "Kafka has begun to delete a replica that the metadata assigns to this broker, and removes it when the broker"
    " starts. Rename the directory to the partition's name before.",
)
EPOCH_ABOVE: Final = DifferenceKind(
    "epoch-above",
    "The metadata is older than these records. Later leaders get leader epochs that were used before, so that followers"
    " may keep records that their leader does not have.",
)
EPOCH_UNCONFIRMED: Final = DifferenceKind(
    "epoch-unconfirmed",
    "Batches have a leader epoch that leader-epoch-checkpoint does not have: the two differ. No checksum covers the"
    " epoch of a batch, so that it does not show that the metadata is older.",
)
REPLICA_LOST: Final = DifferenceKind(
    "replica-lost",
    "No replica of the partition is in any given directory. The broker creates an empty one: the records that there"
    " were are lost.",
)
REPLICA_ASIDE: Final = DifferenceKind(
    "replica-aside",
    "No in-sync replica of the partition serves, but a directory that is set aside, or has another name or id, has its"
    " records: put it back before a broker starts, which would create an empty replica beside it.",
)
REPLICA_UNCLEAN: Final = DifferenceKind(
    "replica-unclean",
    "No in-sync replica of the partition is in any given directory, but one that is not in sync is: an unclean election"
    " of it is what is left, and what it has not copied is lost.",
)
REPLICA_EMPTY: Final = DifferenceKind(
    "replica-empty",
    "The metadata says that this replica is in sync, and it is not there. The broker creates an empty one, which may"
    " become leader before it has copied the records: start a broker that has them first.",
)
REPLICA_BEHIND: Final = DifferenceKind(
    "replica-behind",
    "This replica is not in sync, and not there. The broker creates an empty one, and copies the records.",
    is_harmful=False,
)
TWO_COPIES: Final = DifferenceKind(
    "two-copies", "The broker has the partition in two directories, and does not start until one of them is gone."
)
OTHER_DIRECTORY: Final = DifferenceKind(
    "other-directory",
    "The metadata has the replica in another log directory. The broker tells the controller which one it is.",
    is_harmful=False,
)
FUTURE_ASSIGNED: Final = DifferenceKind(
    "future-assigned",
    "The metadata has the replica in this directory already, where a copy of it is in the making. The broker makes that"
    " copy the replica.",
    is_harmful=False,
)

KINDS: Final = {each.name: each for each in list(vars().values()) if isinstance(each, DifferenceKind)}
"""All kinds, by name, in the order in which output has them."""
