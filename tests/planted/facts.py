# SPDX-License-Identifier: Apache-2.0
"""What the audit's outputs say about one quorum, as facts that can be compared: nodes, offsets and verbs."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from raftlog.records.rules import Severity
from raftlog.tools.auditing.history.quorum_view import QuorumView
from raftlog.tools.auditing.judgement.judgement import Judged
from raftlog.tools.auditing.proof.copies import Copy
from raftlog.tools.auditing.proof.restart import Way
from raftlog.tools.auditing.proof.verdict import QuorumVerdict
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.report.gathering import Gathering
from tests.planted.ground import METADATA
from tests.planted.plant import Field, Planted
from tests.tools.console import run


@attrs.frozen
class Facts:
    """What an output says about a quorum.

    Attributes:
        verdict, reason, missing_from: of the verdict.
        proven: end offset and epoch of what is proven.
        seed: name of the directory to go on from, or None.
        way: how to go on.
        start, stay_down: names of directories.
        forks: names of directories, with the offsets at which they left the lineage to keep.
    """

    verdict: str
    reason: str
    missing_from: int | None
    proven: tuple[tuple[int, int], ...]
    seed: str | None
    way: str
    start: frozenset[str]
    stay_down: frozenset[str]
    forks: frozenset[tuple[str, int]]


def facts_of_verb(root: Path) -> list[Facts]:
    """What ``raftlog quorum`` says about each quorum in a directory, in its order."""
    found: list[Facts] = []
    objects: list[dict[str, Any]] = run("quorum", "--format", "jsonl", root).objects
    for each in objects:
        if each["kind"] == "quorum":
            found.append(
                Facts(
                    each["verdict"],
                    each["reason"],
                    each["missing_from"],
                    tuple((proof["end_offset"], proof["epoch"]) for proof in each["proofs"]),
                    None if each["seed"] is None else _name(each["seed"]["directory"]),
                    each["way"],
                    frozenset(_name(copy["directory"]) for copy in each["start"]),
                    frozenset(_name(copy["directory"]) for copy in each["stay_down"]),
                    frozenset(),
                )
            )
        elif each["forks_at"] is not None:
            fork = _name(each["directory"]), each["forks_at"]
            found[-1] = attrs.evolve(found[-1], forks=found[-1].forks | {fork})
    return found


def facts_of_view(view: QuorumView) -> Facts:
    """What the page of an audit says about a quorum."""
    judgement = view.judgement
    return Facts(
        judgement.ruling.verdict.value,
        judgement.ruling.reason.value,
        judgement.ruling.missing_from,
        tuple((proof.point.offset, proof.point.epoch) for proof in judgement.conflict or judgement.proofs[:1]),
        None if judgement.seed is None else _name(judgement.seed.path),
        judgement.way.value,
        frozenset(_names(judgement.start)),
        frozenset(_names(judgement.stay_down)),
        frozenset((_name(fork.copy.path), fork.offset) for fork in judgement.forks),
    )


def views_of_page(audited: Iterable[Judged]) -> list[QuorumView]:
    """The quorums that the page of an audit shows."""
    gathering = Gathering()
    for judged in audited:
        gathering.add(judged)
    views = (log.view for log in gathering.logs.values())
    return [view for view in views if view is not None]


def contradictions(planted: Planted, field: Field) -> Iterator[str]:
    """Where findings, ``raftlog quorum``, and the page with its advice do not agree about a planted fault."""
    yield from _contradictions(field.directory / planted.ground, planted.judged)


def contradictions_on(ground: str, field: Field) -> Iterator[str]:
    """Where they do not agree about a ground as it is."""
    root = field.directory / ground
    yield from _contradictions(root, list(field.judged(root)))


def _contradictions(root: Path, audited: Sequence[Judged]) -> Iterator[str]:
    views = views_of_page(audited)
    mine, theirs = [facts_of_view(view) for view in views], facts_of_verb(root)
    if sorted(map(_key, mine)) != sorted(map(_key, theirs)):
        yield f"the page says {mine}, the verb {theirs}"
    findings = (finding for judged in audited for finding in judged.findings)
    said = [finding for finding in findings if METADATA in Path(finding.path).parts]
    for view in views:
        yield from _against_findings(view, said)


def _against_findings(view: QuorumView, said: Sequence[Finding]) -> Iterator[str]:
    judgement = view.judgement
    paths = {copy.path for copy in judgement.copies}
    mine = [finding for finding in said if str(_directory(finding)) in paths]
    is_missing = judgement.ruling.verdict is QuorumVerdict.MISSING
    if is_missing and not any(finding.severity >= Severity.DAMAGED for finding in mine):
        yield f"the verdict is {judgement.ruling}, and no finding is above suspicious"
    lost = [finding for finding in mine if finding.rule in {"committed-lost", "replica-lost"}]
    if lost and not is_missing:
        yield f"{lost[0]}, but the verdict is {judgement.ruling}"
    for finding in lost:
        named = _name(str(_directory(finding)))
        if judgement.seed is not None and named == _name(judgement.seed.path):
            yield f"{finding}, which is the seed"
    for member in view.members:
        if member.damaged_from is not None and member.path in {copy.path for copy in judgement.start}:
            yield f"{member.path} is to be started, and damaged from offset {member.damaged_from} on"
    if judgement.way is Way.START and not judgement.start:
        yield "nothing is to be started, and the way is to start"


def _directory(finding: Finding) -> Path:
    path = Path(finding.path)
    parents = [each for each in (path, *path.parents) if each.name == METADATA]
    return parents[0].parent if parents else path.parent


def _key(facts: Facts) -> str:
    fields = attrs.asdict(facts)
    return json.dumps(fields | {name: sorted(fields[name]) for name in ("start", "stay_down", "forks")}, sort_keys=True)


def _names(copies: Iterable[Copy]) -> list[str]:
    return [_name(copy.path) for copy in copies]


def _name(path: str) -> str:
    return Path(path).name
