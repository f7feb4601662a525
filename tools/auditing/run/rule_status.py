# SPDX-License-Identifier: Apache-2.0
"""What came of each rule in a run: a rule that found nothing has passed only if there was something to check."""

import enum
from collections.abc import Iterator
from typing import Final

import attrs

from raftlog.records.files.file_names import FileKind
from raftlog.records.rules import Rule
from raftlog.tools.auditing.judgement.judgement import Judged
from raftlog.tools.auditing.run.run import Account, is_read
from raftlog.tools.catalogue.audit_rules import CATALOGUE
from raftlog.tools.input.inputs import RECORD_KINDS


class CheckStatus(enum.Enum):
    """What came of a rule; the value is what tables say."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    SKIPPED = "skipped"
    """There was nothing to which it applies."""
    ERROR = "error"
    """It found nothing, but something could not be read."""


class _Subject(enum.Enum):
    """What a rule is about, where that is no kind of file."""

    RAFT = enum.auto()
    REPLICAS = enum.auto()
    LOG_DIRECTORIES = enum.auto()
    MESSAGES = enum.auto()
    ANYTHING = enum.auto()
    NOTHING = enum.auto()


_Subjects = frozenset[_Subject | FileKind]

_INDEXES: Final[_Subjects] = frozenset({FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX})
_SNAPSHOTS: Final[_Subjects] = frozenset({FileKind.SNAPSHOT, FileKind.BOOTSTRAP_SNAPSHOT})
_LOGS: Final[_Subjects] = frozenset({FileKind.LOG})
_BATCHES: Final[_Subjects] = frozenset(RECORD_KINDS)
_OFFSET_CHECKPOINTS: Final[_Subjects] = frozenset(
    {
        FileKind.RECOVERY_POINT_CHECKPOINT,
        FileKind.LOG_START_OFFSET_CHECKPOINT,
        FileKind.REPLICATION_OFFSET_CHECKPOINT,
        FileKind.CLEANER_OFFSET_CHECKPOINT,
    }
)


def _only(subject: _Subject | FileKind) -> _Subjects:
    return frozenset({subject})


_SUBJECTS: Final[tuple[tuple[str, _Subjects], ...]] = (
    ("decoder-raised", _only(_Subject.NOTHING)),  # Of dump-log alone, as is the next one.
    ("index-sanity", _only(_Subject.NOTHING)),
    ("snapshot-twins", _only(_Subject.REPLICAS)),
    ("replica-", _only(_Subject.REPLICAS)),
    ("majority-missing", _only(_Subject.REPLICAS)),
    ("cluster-foreign", _only(_Subject.LOG_DIRECTORIES)),
    ("node-twice", _only(_Subject.LOG_DIRECTORIES)),
    ("directory-twice", _only(_Subject.LOG_DIRECTORIES)),
    ("partition-twice", _only(_Subject.LOG_DIRECTORIES)),
    ("directory-id", _only(FileKind.META_PROPERTIES)),
    ("index-timestamp", _only(FileKind.TIME_INDEX)),
    ("index-missing", _LOGS),
    ("index-", _INDEXES),
    ("time-index-", _only(FileKind.TIME_INDEX)),
    ("transaction-index", _LOGS),
    ("snapshot-", _SNAPSHOTS),
    ("voters-", _only(_Subject.RAFT)),
    ("kraft-version-", _only(_Subject.RAFT)),
    ("election-missing", _only(_Subject.RAFT)),
    ("election-", _only(FileKind.QUORUM_STATE)),
    ("epoch-opening", _only(_Subject.RAFT)),
    ("epoch-leader", _only(_Subject.RAFT)),
    ("epoch-negative", _only(_Subject.RAFT)),
    ("leader-", _only(_Subject.RAFT)),
    ("control-", _only(_Subject.RAFT)),
    ("log-", _only(_Subject.RAFT)),
    ("offset-gap", _only(_Subject.RAFT)),
    ("segment-gap", _only(_Subject.RAFT)),
    ("batch-bare", _only(_Subject.RAFT)),
    ("raft-", _only(_Subject.RAFT)),
    ("frame-empty", _only(_Subject.RAFT)),
    ("message-", _only(_Subject.MESSAGES)),
    ("epochs-missing", _LOGS),
    ("epochs-", _only(FileKind.LEADER_EPOCH_CHECKPOINT)),
    ("topic-id", _only(FileKind.PARTITION_METADATA)),
    ("offset-checkpoint", _OFFSET_CHECKPOINTS),
    ("partition-missing", _OFFSET_CHECKPOINTS),
    ("segments-gone", _only(_Subject.ANYTHING)),
    ("producer-snapshot", _only(FileKind.PRODUCER_SNAPSHOT)),
    ("file-crc", _only(FileKind.PRODUCER_SNAPSHOT)),
    ("file-", _only(_Subject.ANYTHING)),
    ("audit-failed", _only(_Subject.ANYTHING)),
    ("directory-empty", _only(_Subject.ANYTHING)),
    ("meta-missing", _only(_Subject.ANYTHING)),
    ("", _BATCHES),
)
"""What rules are about, by how their ids begin; the first that fits counts."""


@attrs.frozen
class Check:
    """What came of a rule."""

    rule: Rule
    status: CheckStatus
    finding_count: int


@attrs.define
class Checks:
    """Notes what there was to check."""

    _seen: set[_Subject | FileKind] = attrs.field(factory=set)
    _log_directories: set[str] = attrs.field(factory=set)

    def add(self, judged: Judged) -> None:
        """Note what was judged together."""
        for partition in judged.places:
            for file in partition.files:
                self._seen.add(_Subject.ANYTHING)
                if file.task.kind is not None and is_read(file):
                    self._seen.update({file.task.kind, *file.task.indexes})
                if file.task.reads_messages and file.task.is_raft and file.task.kind in RECORD_KINDS and is_read(file):
                    self._seen.add(_Subject.MESSAGES)
                if file.task.kind is FileKind.META_PROPERTIES:
                    self._log_directories.add(partition.place.log_directory)
            if partition.is_raft:
                self._seen.add(_Subject.RAFT)
        if any(len(replicas) > 1 for replicas in judged.replicas.values()):
            self._seen.add(_Subject.REPLICAS)

    def merge(self, other: "Checks") -> None:
        """Take what others have noted of the same audit."""
        self._seen |= other._seen  # noqa: SLF001 - one of the same class
        self._log_directories |= other._log_directories  # noqa: SLF001 - one of the same class

    def results(self, account: Account) -> Iterator[Check]:
        """Yield what came of each rule of the catalogue.

        Args:
            account: of the whole run.
        """
        seen = self._seen | ({_Subject.LOG_DIRECTORIES} if len(self._log_directories) > 1 else set())
        for rule in CATALOGUE.values():
            found = account.by_rule[rule.id]
            yield Check(
                rule, _status(found, applies=bool(_subjects(rule) & seen), unreadable=account.unreadable), found
            )


def _subjects(rule: Rule) -> _Subjects:
    return next(subjects for start, subjects in _SUBJECTS if rule.id.startswith(start))


def _status(found: int, *, applies: bool, unreadable: int) -> CheckStatus:
    if found:
        return CheckStatus.FAIL
    if unreadable:
        return CheckStatus.ERROR
    return CheckStatus.PASS if applies else CheckStatus.SKIPPED
