# SPDX-License-Identifier: Apache-2.0
"""What a broker acted on decides a verdict where no controller has it, in every output alike."""

import json
import shutil
from pathlib import Path

import pytest

from raftlog.tools.auditing.history.quorum_view import quorum_view
from raftlog.tools.auditing.proof.proofs import ProofKind
from raftlog.tools.auditing.proof.verdict import QuorumVerdict, Reason
from tests.planted.faults import FAULTS
from tests.planted.ground import METADATA, CleanCopy, Ground
from tests.tools.auditing.test_quorum_corpus import surveyed
from tests.tools.console import run

TOPIC = "tmp-3-0"


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """Log directories of a real quorum whose voters lack a topic that broker 101 has; the leader is not there."""
    CleanCopy("dynamic", tmp_path / "dynamic")
    FAULTS["voters-cut-below-a-topic"].plant(Ground(tmp_path / "dynamic", "place"))
    shutil.rmtree(tmp_path / "dynamic" / "n3")
    return tmp_path / "dynamic"


def said(paths: list[Path]) -> tuple[int, dict[str, object]]:
    """What ``raftlog quorum`` says, with its exit code."""
    result = run("quorum", "--format", "jsonl", *map(str, paths))
    return result.exit_code, json.loads(result.text.splitlines()[0])


def test_the_broker_proves_a_loss(cut: Path) -> None:
    """The voters here agree, and are a majority, but the records up to the topic's are committed."""
    view = quorum_view(surveyed(sorted(cut.iterdir())))
    assert view is not None
    judgement = view.judgement
    file = str(cut / "n101" / TOPIC / "partition.metadata")
    assert [(proof.kind, proof.point.offset, proof.paths) for proof in judgement.proofs[:1]] == [
        (ProofKind.BROKER, 182, (file,))
    ]
    assert judgement.ruling.reason is Reason.VOTERS_LACK_PROVEN
    assert judgement.seed is not None
    assert judgement.seed.path == str(cut / "n101")
    code, line = said(sorted(cut.iterdir()))
    assert (code, line["verdict"], line["reason"]) == (2, "missing", "voters-lack-proven")
    assert line["proofs"] == [{"by": "broker", "end_offset": 182, "epoch": 4, "files": [file]}]
    text = run("quorum", str(cut))
    assert text.exit_code == 2
    assert f"by a broker that has acted on the last of them ({file})" in text.text
    assert "HighWatermark:          182 or more: a broker has acted on the record before it" in text.text
    verified = run("verify", str(cut))
    assert verified.exit_code == 2
    assert f"a broker that has acted on the last of them ({file}) proves it [committed-lost]" in verified.text


def test_without_the_broker_nothing_is_missing(cut: Path) -> None:
    """The same files without the topic's directory: a majority of the voters agrees, so nothing can be missing."""
    shutil.rmtree(cut / "n101" / TOPIC)
    view = quorum_view(surveyed(sorted(cut.iterdir())))
    assert view is not None
    assert view.judgement.ruling.verdict is QuorumVerdict.NOTHING_MISSING


def test_only_directories_that_were_given_whole_are_read(cut: Path) -> None:
    """If the directory of the metadata log alone is named, what is beside it is not looked at."""
    code, line = said([path / METADATA for path in sorted(cut.iterdir())])
    assert line["proofs"] != []
    assert all(proof["by"] != "broker" for proof in line["proofs"])  # type: ignore[attr-defined]
    assert code != 2


def test_a_doubted_name_beside_the_log_hides_no_proof(cut: Path) -> None:
    """Whichever name a snapshot of the broker has, its log has the record on which the broker acted: that is lost."""
    snapshot = max((cut / "n101" / METADATA).glob("*.checkpoint"))
    beyond = snapshot.rename(snapshot.with_name(f"{5000:020}-{snapshot.stem.partition('-')[2]}.checkpoint"))
    view = quorum_view(surveyed(sorted(cut.iterdir())))
    assert view is not None
    judgement = view.judgement
    doubted = [each.path for copy in judgement.copies for each in copy.doubted.values() if not each.is_certain]
    assert doubted == [str(beyond)]
    assert judgement.ruling.reason is Reason.VOTERS_LACK_PROVEN
    assert (judgement.proofs[0].kind, judgement.proven.offset) == (ProofKind.BROKER, 182)
    code, line = said(sorted(cut.iterdir()))
    assert (code, line["verdict"], line["reason"]) == (2, "missing", "voters-lack-proven")
