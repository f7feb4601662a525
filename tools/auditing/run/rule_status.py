# SPDX-License-Identifier: Apache-2.0
"""The status of each rule in a run: a rule without findings has passed only if there was something to check."""

import enum
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from raftlog.records.files.file_names import FileKind
from raftlog.records.rules import Rule, Subject
from raftlog.tools.auditing.judgement.judgement import Judged
from raftlog.tools.auditing.run.run import Account, is_read
from raftlog.tools.catalogue.audit_rules import CATALOGUE
from raftlog.tools.input.inputs import RECORD_KINDS


class CheckStatus(enum.Enum):
    """The status of a rule; the value is the one in the tables."""

    PASS = "pass"  # noqa: S105 - not a password
    FAIL = "fail"
    SKIPPED = "skipped"
    """There was no input that it applies to."""
    ERROR = "error"
    """It found nothing, but something could not be read."""


KINDS_OF_SUBJECTS: Final = {
    Subject.BATCHES: RECORD_KINDS,
    Subject.LOGS: {FileKind.LOG},
    Subject.SNAPSHOTS: {FileKind.SNAPSHOT, FileKind.BOOTSTRAP_SNAPSHOT},
    Subject.INDEXES: {FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX},
    Subject.TIME_INDEX: {FileKind.TIME_INDEX},
    Subject.PRODUCER_SNAPSHOT: {FileKind.PRODUCER_SNAPSHOT},
    Subject.LEADER_EPOCH_CHECKPOINT: {FileKind.LEADER_EPOCH_CHECKPOINT},
    Subject.OFFSET_CHECKPOINTS: {
        FileKind.RECOVERY_POINT_CHECKPOINT,
        FileKind.LOG_START_OFFSET_CHECKPOINT,
        FileKind.REPLICATION_OFFSET_CHECKPOINT,
        FileKind.CLEANER_OFFSET_CHECKPOINT,
    },
    Subject.PARTITION_METADATA: {FileKind.PARTITION_METADATA},
    Subject.META_PROPERTIES: {FileKind.META_PROPERTIES},
    Subject.QUORUM_STATE: {FileKind.QUORUM_STATE},
}
"""The kinds of files whose presence means that a subject is present; ``Checks.add`` finds the other subjects."""


def _subjects_of(kinds: Iterable[FileKind]) -> Iterator[Subject]:
    found = frozenset(kinds)
    return (subject for subject, shown_by in KINDS_OF_SUBJECTS.items() if not found.isdisjoint(shown_by))


@attrs.frozen
class Check:
    """The status of a rule."""

    rule: Rule
    status: CheckStatus
    finding_count: int


@attrs.define
class Checks:
    """Records which subjects there were to check."""

    _seen: set[Subject] = attrs.field(factory=set)
    _log_directories: set[str] = attrs.field(factory=set)

    def add(self, judged: Judged) -> None:
        """Record the subjects in judged evidence."""
        for partition in judged.places:
            for file in partition.files:
                self._seen.add(Subject.ANYTHING)
                if file.task.kind is not None and is_read(file):
                    self._seen.update(_subjects_of((file.task.kind, *file.task.indexes)))
                if file.task.reads_messages and file.task.is_raft and file.task.kind in RECORD_KINDS and is_read(file):
                    self._seen.add(Subject.MESSAGES)
                if file.task.kind is FileKind.LOG and not file.task.is_raft and is_read(file):
                    self._seen.add(Subject.TOPICS)
                if file.task.kind is FileKind.META_PROPERTIES:
                    self._log_directories.add(partition.place.log_directory)
            if partition.is_raft:
                self._seen.add(Subject.RAFT)
        for replicas in judged.replicas.values():
            of_raft = sum(replica.is_raft for replica in replicas)
            if len(replicas) > 1:
                self._seen.add(Subject.REPLICAS)
            if of_raft > 1:
                self._seen.add(Subject.RAFT_REPLICAS)
            if len(replicas) - of_raft > 1:
                self._seen.add(Subject.TOPIC_REPLICAS)

    def merge(self, other: "Checks") -> None:
        """Add the subjects that another instance has recorded of the same audit."""
        self._seen |= other._seen  # noqa: SLF001 - one of the same class
        self._log_directories |= other._log_directories  # noqa: SLF001 - one of the same class

    def results(self, account: Account) -> Iterator[Check]:
        """Yield the status of each rule of the catalogue.

        Args:
            account: of the whole run.
        """
        seen = self._seen | ({Subject.LOG_DIRECTORIES} if len(self._log_directories) > 1 else set())
        for rule in CATALOGUE.values():
            found = account.by_rule[rule.id]
            yield Check(rule, _status(found, applies=rule.subject in seen, unreadable=account.unreadable), found)


def _status(found: int, *, applies: bool, unreadable: int) -> CheckStatus:
    if found:
        return CheckStatus.FAIL
    if unreadable:
        return CheckStatus.ERROR
    return CheckStatus.PASS if applies else CheckStatus.SKIPPED
