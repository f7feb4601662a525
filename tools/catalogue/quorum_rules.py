# SPDX-License-Identifier: Apache-2.0
"""Rules of an audit about who votes and leads, about producers, and about replicas beside each other.

``raftlog.tools.catalogue.audit_rules`` has the others, and says what severities mean.
"""

from typing import Final

from raftlog.records.rules import Rule, Severity

_HARMLESS = Severity.HARMLESS
_SUSPICIOUS = Severity.SUSPICIOUS
_DAMAGED = Severity.DAMAGED
_DATA_LOSS = Severity.DATA_LOSS

_VOTERS = (
    Rule(
        "voters-schema",
        _DAMAGED,
        "a voter set is not empty, and has each voter, directory and listener once",
        "VoterSet",
        "voter 2 twice",
    ),
    Rule(
        "voters-accepted",
        _DAMAGED,
        "a voter set adds at most one voter and removes at most one: Kafka would accept it",
        "VoterSet#hasOverlappingMajority",
        "{1, 2, 3} becomes {1, 4, 5}",
    ),
    Rule(
        "voters-overlap",
        _DAMAGED,
        "each majority of a voter set shares a voter with each of the one before: it is safe",
        "KIP-853",
        "{1, 2, 3} becomes {1, 2, 4}: Kafka accepts it, and {1, 3} and {2, 4} decide apart",
    ),
    Rule(
        "voters-one-change",
        _SUSPICIOUS,
        "a voter set differs by one added, one removed or one updated voter from the one before",
        "KIP-853",
        "two voters have new endpoints at once",
    ),
    Rule(
        "voters-version",
        _DAMAGED,
        "a Voters record stands where kraft.version is 1 or more",
        "KRaftControlRecordStateMachine",
        "a Voters record at kraft.version 0",
    ),
    Rule(
        "voters-range",
        _SUSPICIOUS,
        "each voter supports the kraft.version in force",
        "KIP-853",
        "kraft.version 1 with a voter of versions 0 to 0",
    ),
    Rule(
        "voters-uncommitted",
        _SUSPICIOUS,
        "a voter change is in another batch than its epoch's LeaderChange, and than the change before it",
        "AddVoterHandler",
        "the batch of a LeaderChange makes {1, 2, 3} of {1, 2}: nothing of its epoch was committed yet",
    ),
    Rule("kraft-version-order", _DAMAGED, "kraft.version does not go back", "KIP-853", "1 becomes 0"),
    Rule("kraft-version-known", _DAMAGED, "kraft.version is 0 or 1", "KRaftVersion", "level 7"),
    Rule(
        "kraft-version-voters",
        _SUSPICIOUS,
        "where kraft.version becomes 1, the voters stand beside it",
        "KafkaRaftClient",
        "kraft.version 1 without a Voters record in its batch",
    ),
)

_ELECTIONS = (
    Rule(
        "election-missing",
        _SUSPICIOUS,
        "a raft log that has records has a quorum-state",
        "FileQuorumStateStore",
        "quorum-state is gone: the node starts at epoch 0 and may vote twice",
    ),
    Rule(
        "election-stale",
        _DAMAGED,
        "quorum-state is not behind the log's epoch",
        "QuorumState#initialize",
        "epoch 3 beside a log of epoch 5: restored from an old copy",
    ),
    Rule(
        "election-leader",
        _DAMAGED,
        "quorum-state and the log agree on who leads an epoch",
        "QuorumState",
        "leader 2 of epoch 5, whose LeaderChange names 1",
    ),
    Rule(
        "election-vote",
        _SUSPICIOUS,
        "quorum-state's vote is for a voter",
        "QuorumState",
        "a vote for 9, which was never a voter",
    ),
    Rule(
        "election-stranger",
        _SUSPICIOUS,
        "quorum-state's leader is a voter",
        "QuorumState",
        "leader 77, which was never a voter: another cluster's file, or a voter set that is not here yet",
    ),
    Rule(
        "election-last-epoch",
        _DAMAGED,
        "quorum-state's epoch is below 2147483647: there can be another election",
        "QuorumState#transitionToCandidate",
        "epoch 2147483647: no greater one can be voted in",
    ),
    Rule(
        "election-copies",
        _SUSPICIOUS,
        "raftlog's checked copies of quorum-state agree with it",
        "raftlog",
        "epoch 7 in a copy, 6 in quorum-state",
    ),
    Rule(
        "election-handover",
        _HARMLESS,
        "both of raftlog's copies of quorum-state are as new as it is",
        "raftlog",
        "epoch 5 in both copies, 6 in quorum-state: Kafka has run here since",
    ),
    Rule(
        "directory-id",
        _SUSPICIOUS,
        "a node's directory id is that of its voter",
        "KIP-853",
        "voter 2 has another directory: its disk was replaced",
    ),
    Rule(
        "meta-missing",
        _SUSPICIOUS,
        "a log directory has meta.properties",
        "MetaPropertiesEnsemble",
        "a log directory without meta.properties",
    ),
)

_PRODUCERS = (
    Rule(
        "sequence-gap",
        _SUSPICIOUS,
        "an idempotent producer's batches have consecutive sequences",
        "ProducerAppendInfo#checkSequence",
        "sequence 40 after 30 to 34",
    ),
    Rule(
        "sequence-twice",
        _DAMAGED,
        "an idempotent producer's batch is written once",
        "ProducerStateEntry#findDuplicateBatch",
        "sequences 30 to 34 twice",
    ),
    Rule(
        "producer-epoch",
        _DAMAGED,
        "a producer's epochs do not go back",
        "ProducerAppendInfo#checkProducerEpoch",
        "producer epoch 2 after 3",
    ),
    Rule(
        "transaction-open",
        _HARMLESS,
        "every transaction has ended",
        "ProducerStateManager",
        "a transaction of producer 7 is still going on",
    ),
    Rule(
        "transaction-hanging",
        _SUSPICIOUS,
        "a transaction ends within 15 minutes of its last record",
        "KIP-664",
        "the log goes on for a day behind an open transaction",
    ),
    Rule(
        "transaction-empty",
        _HARMLESS,
        "a marker ends a transaction that has records in the partition",
        "TransactionCoordinator",
        "COMMIT of a producer that wrote nothing here",
    ),
    Rule(
        "coordinator-epoch",
        _SUSPICIOUS,
        "coordinator epochs of markers do not go back",
        "ProducerAppendInfo#checkCoordinatorEpoch",
        "coordinator epoch 3 after 5",
    ),
    Rule(
        "transaction-mixed",
        _DAMAGED,
        "a producer's batches within a transaction are all transactional",
        "ProducerAppendInfo",
        "a plain batch in the middle of a transaction",
    ),
    Rule(
        "producer-snapshot",
        _SUSPICIOUS,
        "a producer snapshot says of each producer what the log does",
        "ProducerStateManager",
        "last sequence 30, where the log has 44",
    ),
)

_REPLICAS = (
    Rule(
        "cluster-foreign",
        _SUSPICIOUS,
        "log directories that are looked at together are of one cluster",
        "MetaPropertiesEnsemble",
        "cluster ids A and B",
    ),
    Rule(
        "cluster-twice",
        _SUSPICIOUS,
        "metadata logs of one cluster id have one history",
        "StorageTool",
        "epoch 1 begins with leader 1 of voters 1 here, there with leader 2 of voters 2: two clusters with one id",
    ),
    Rule(
        "node-twice",
        _SUSPICIOUS,
        "of log directories of one cluster each has a node id of its own",
        "MetaPropertiesEnsemble",
        "node.id 2 in two directories, each with a metadata log",
    ),
    Rule(
        "partition-twice",
        _DAMAGED,
        "a broker has a partition in one of its log directories",
        "LogManager#loadLog",
        "orders-0 in two directories of node 1: it does not start",
    ),
    Rule(
        "directory-twice",
        _SUSPICIOUS,
        "each log directory has a directory id of its own",
        "KIP-858",
        "a disk was copied",
    ),
    Rule(
        "replica-leader",
        _DAMAGED,
        "an epoch has one leader, whichever replica is asked",
        "KIP-595",
        "epoch 5 is led by 1 on a replica, by 2 on another",
    ),
    Rule(
        "replica-batch",
        _DAMAGED,
        "an epoch and offset name one batch, whichever replica is asked",
        "KIP-595",
        "offset 70 of epoch 5 with two CRCs",
    ),
    Rule(
        "replica-rot",
        _HARMLESS,
        "what is damaged on one replica is not to be had from another",
        "raftlog",
        "offset 70 is damaged here, and sound on two other replicas: it can be fetched again",
    ),
    Rule(
        "replica-forked",
        _SUSPICIOUS,
        "replicas have the same epochs at the same offsets",
        "KIP-595",
        "from offset 70 on epoch 5 here, epoch 6 there: one of them will truncate",
    ),
    Rule(
        "replica-lost",
        _DATA_LOSS,
        "what one replica has or had committed, the others have",
        "raftlog",
        "a fork below the end of the snapshot that was taken of it",
    ),
    Rule("replica-behind", _HARMLESS, "replicas end at the same offset", "KIP-595", "a replica was stopped earlier"),
    Rule(
        "replica-compacted",
        _HARMLESS,
        "replicas keep the same records of a compacted topic",
        "LogCleaner",
        "one replica was cleaned later",
    ),
    Rule(
        "majority-missing",
        _SUSPICIOUS,
        "a majority of the voters in force is among the replicas that are looked at",
        "KIP-595",
        "1 of 3 voters' directories was given",
    ),
)

QUORUM_RULES: Final = (*_VOTERS, *_ELECTIONS, *_PRODUCERS, *_REPLICAS)
