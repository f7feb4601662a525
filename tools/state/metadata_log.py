# SPDX-License-Identifier: Apache-2.0
"""The one metadata log among given files."""

from raftlog.errors import StateNotThereError
from raftlog.records.files.file_names import METADATA_TOPIC
from raftlog.tools.audit_verbs.quorum_files import Log, QuorumFiles
from raftlog.tools.auditing.history.quorum_view import QuorumView, quorum_view


def metadata_log(files: QuorumFiles) -> tuple[Log, QuorumView]:
    """Return the one metadata log among the files.

    Raises:
        StateNotThereError: there is none, or more than one.
    """
    found = []
    for log in files.logs:
        view = quorum_view(log) if any(each.place.topic == METADATA_TOPIC for each in log) else None
        if view is not None:
            found.append((log, view))
    if not found:
        raise StateNotThereError(f"the paths have no log of {METADATA_TOPIC}")
    if len(found) > 1:
        ids = sorted(view.cluster_id or "unknown" for _, view in found)
        raise StateNotThereError(f"the directories are of {len(found)} clusters or histories: {', '.join(ids)}")
    return found[0]
