# SPDX-License-Identifier: Apache-2.0
"""The audit on this machine: several processes survey files, and this process judges them."""

from collections.abc import Sequence

import attrs

from raftlog.tools.auditing.evidence import FileEvidence
from raftlog.tools.auditing.run.evidence_store import EvidenceStore, StoredSurvey
from raftlog.tools.auditing.run.full_audit import AuditRun
from raftlog.tools.auditing.run.run import audit
from raftlog.tools.auditing.run.run_progress import RunProgress


@attrs.frozen
class LocalEngine:
    """Audits on this machine, and resumes an interrupted run in the same output directory.

    Attributes:
        sources: as for ``find_tasks``.
        processes: number of processes that read files.
        is_fresh: whether to read even files that have not changed since the last run.
        reads_messages: whether to read the messages in records of the metadata log too.
        label: the command's name, for progress on the terminal.
    """

    sources: Sequence[str]
    processes: int
    is_fresh: bool = False
    reads_messages: bool = False
    label: str = "audit"

    def __call__(self, run: AuditRun) -> int:
        """Audit, and return the number of files that were not read because they had not changed.

        Raises:
            StorageError: the store of evidence failed. The evidence so far is kept for the next run.
            MissingExtraError: a package of an extra is not installed.
        """
        path = run.output.store_path
        with EvidenceStore(path, run.run_id) as store:
            if self.is_fresh:
                store.forget()
            with RunProgress(self.label, self.sources) as progress:

                def surveyed(file: FileEvidence) -> None:
                    store.take(file)
                    progress.surveyed(file)

                survey = StoredSurvey(path)
                for judged in audit(self.sources, self.processes, survey, surveyed, reads_messages=self.reads_messages):
                    run.take_judged(judged)
            store.drop_unseen()
            return store.reused_files
