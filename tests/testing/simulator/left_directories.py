# SPDX-License-Identifier: Apache-2.0
"""What a schedule has left in the files of sound disks, as the offline audit finds it: nothing worse than harmless."""

import tempfile
from pathlib import Path

from raftlog.records.rules import Severity
from raftlog.testing.simulator.disks.file_directory import FileDirectory
from raftlog.testing.simulator.simulation import Simulation
from raftlog.testing.simulator.violation import ViolationError
from raftlog.tools.auditing.run.run import audit

INVARIANT = "audit-finds-nothing"
"""The name of the violation."""


def audited(simulation: Simulation) -> ViolationError | None:
    """Audit the directories, and return the first finding that is worse than harmless; None if there is none.

    A disk that was damaged is left out: the audit finds that, and should. So is the model.
    """
    with tempfile.TemporaryDirectory() as root:
        paths = [path for each in simulation.machines.values() if (path := _written(each.directory, Path(root)))]
        for judged in audit(paths, 1) if paths else ():
            for finding in judged.findings:
                if finding.severity > Severity.HARMLESS:
                    return ViolationError(INVARIANT, str(finding))
    return None


def _written(directory: object, root: Path) -> str | None:
    """Write the files of a sound directory, and return where; None if it is none."""
    if not isinstance(directory, FileDirectory) or directory.was_damaged or directory.ledger.needs_others:
        return None
    place = root / str(directory.identity.key)
    for path, content in directory.disk.files.contents().items():
        file = place / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return str(place)
