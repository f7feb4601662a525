# SPDX-License-Identifier: Apache-2.0
"""The verdict on a quorum as members of a JSON object (``docs/quorum-1.schema.json``)."""

from collections.abc import Iterable
from typing import Any

from raftlog.offsets import OffsetAndEpoch
from raftlog.tools.auditing.proof.copies import Copy, DoubtedName
from raftlog.tools.auditing.proof.judging import Judgement, LastChange
from raftlog.tools.auditing.proof.proofs import Proof
from raftlog.tools.terminal.json_lines import path_list_member, path_member


def judgement_members(judgement: Judgement) -> dict[str, Any]:
    """Return the verdict, what proves it, and the advice, as JSON values by name."""
    ruling = judgement.ruling
    return {
        "verdict": ruling.verdict.value,
        "reason": ruling.reason.value,
        "missing_from": ruling.missing_from,
        "rests_on_flush": ruling.rests_on_flush,
        "rests_on_voters": ruling.rests_on_voters,
        "proofs": [_proof(proof) for proof in judgement.conflict or judgement.proofs[:1]],
        "parting_offset": judgement.parting_offset,
        "seed": None if judgement.seed is None else _copy(judgement.seed),
        "way": judgement.way.value,
        "start": _copies(judgement.start),
        "stay_down": _copies(judgement.stay_down),
        "never_start": _copies(judgement.never_start),
        "lacking_proven": _copies(judgement.lacking),
        "rewritten_by": _copies(fork.copy for fork in judgement.forks if fork.has_rewritten),
        "misnamed_snapshots": [_misnamed(doubted) for copy in judgement.copies for doubted in copy.doubted.values()],
        "unproven_change": None if judgement.last_change is None else _change(judgement.last_change),
    }


def _proof(proof: Proof) -> dict[str, Any]:
    return {"by": proof.kind.value, **_point(proof.point), **path_list_member("files", proof.paths)}


def _point(point: OffsetAndEpoch) -> dict[str, int]:
    return {"end_offset": point.offset, "epoch": point.epoch}


def _copies(copies: Iterable[Copy]) -> list[dict[str, Any]]:
    return [_copy(copy) for copy in copies]


def _copy(copy: Copy) -> dict[str, Any]:
    return {
        "node_id": None if copy.key is None else copy.key.id,
        **path_member("directory", copy.path),
        **_point(copy.lineage.end),
    }


def _misnamed(doubted: DoubtedName) -> dict[str, Any]:
    return {**path_member("file", doubted.path), "reason": doubted.reason, "is_certain": doubted.is_certain}


def _change(change: LastChange) -> dict[str, Any]:
    return {
        "offset": change.offset,
        "voters_before": sorted(change.before.voter_ids),
        "present_before": change.present_before,
        "may_be_cut": change.may_be_cut,
    }
