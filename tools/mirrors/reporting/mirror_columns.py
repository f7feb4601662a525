# SPDX-License-Identifier: Apache-2.0
"""The columns of the tables of ``raftlog verify-mirror --out``, apart from what makes their rows.

Each row has the ``run_id`` of its run; a run is complete once it is in ``runs``. Times are UTC, in ms; starts of
offsets are inclusive, ends exclusive.

======================  ================================================================================================
``runs``                one row per run: the paths, the flow, the time and the outcome
``pairs``               one row per partition and its mirror: what became of the records of the source
``findings``            one row per finding: about a pair, with the places on both sides; about the flow; about a file
``syncs``               one row per offset sync, in the order of its topic
``moves``               one row per group, partition and direction: where the group goes on, and what it misses
======================  ================================================================================================
"""

from typing import Final

from raftlog.tools.auditing.run.audit_output import OutputKind

_PAIR: Final = {"run_id": "text", "source_topic": "text", "target_topic": "text", "partition": "int"}
COLUMNS: Final[dict[str, dict[str, str]]] = {
    "runs": {
        "run_id": "text",
        "raftlog_version": "text",
        "started": "time",
        "finished": "time",
        "sources": "texts",
        "targets": "texts",
        "source_alias": "text",
        "target_alias": "text",
        "policy": "text",  # default, identity or same-offsets
        "verdict": "text",  # clean, suspicious, damaged or data-loss
        "pairs": "long",
        "compared": "long",
        "unverifiable": "long",
        "lag": "long",
        "aborted": "long",
        "harmless": "long",  # findings
        "suspicious": "long",
        "damaged": "long",
        "data_loss": "long",
    },
    "pairs": _PAIR
    | {
        "worst": "text",  # the worst severity of its findings; harmless if it has none
        "compared": "long",  # these four add up to the data records of the source
        "unverifiable": "long",
        "lag": "long",
        "aborted": "long",
        "anchors_equal": "long",
        "anchors_unverifiable": "long",
        "anchors_wrong": "long",
        "lifetimes": "int",
        "next_source_offset": "long",
        "source_directory": "text",
        "source_reason": "text",  # why this replica was compared
        "target_directory": "text",
        "target_reason": "text",
    },
    "findings": {
        "run_id": "text",
        "rule": "text",
        "severity": "text",
        "reason": "text",
        "source_topic": "text",  # null, as are the other places, if it is not about a pair
        "target_topic": "text",
        "partition": "int",
        "source_start_offset": "long",
        "source_end_offset": "long",
        "target_start_offset": "long",
        "target_end_offset": "long",
        "subject": "text",  # a flow or a topic, if it is about the flow
        "since": "time",
        "until": "time",
        "file": "text",  # if it is about a file
        "position": "long",
        "offset": "long",
    },
    "syncs": {
        "run_id": "text",
        "topic": "text",  # of the source
        "partition": "int",
        "upstream_offset": "long",
        "downstream_offset": "long",
        "producer_id": "long",  # another one is another task
        "sync_offset": "long",  # in the topic of the syncs
        "timestamp": "time",
    },
    "moves": _PAIR
    | {
        "from_alias": "text",  # the cluster that the group leaves
        "group": "text",
        "committed": "long",
        "translated": "long",
        "position": "long",
        "origin": "text",  # commit, checkpoint, reset or set
        "read_again": "long",
        "skipped": "long",
        "missing": "long",
        "newest_source": "time",
        "newest_target": "time",
    },
}
"""The columns of each table, and their types. The first table is the one that completes a run."""
OF_MIRRORS: Final = OutputKind("verify-mirror", COLUMNS)
