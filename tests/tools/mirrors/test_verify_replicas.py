# SPDX-License-Identifier: Apache-2.0
"""``raftlog verify-mirror`` with several replicas, with topics that were made anew, and with retention in a hurry."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from raftlog.records.batches.record import Record, RecordView
from raftlog.records.messages.mirrors.mirror_records import OffsetSync
from raftlog.storage.reading.segment_reader import open_segment
from tests.tools.console import Outcome, run
from tests.tools.mirrors.changed_mirror import MIRROR, Entry, copied, move_syncs, rewrite
from tests.tools.mirrors.recreated_topics import outrun_by_retention, recreate_orders
from tests.tools.mirrors.test_verify_mirror import in_other_order, with_change
from tests.tools.mirrors.verb_runs import found, verified


def pair_of(outcome: Outcome, topic: str, partition: int = 0) -> dict[str, object]:
    """The line of a pair."""
    name = {"topic": topic, "partition": partition}
    (line,) = [line for line in outcome.of_kind("pair") if line["source"] == name]
    return line


def second_replica(source: Path, most: int) -> Path:
    """Another node of the source cluster, which has one partition, up to an offset."""
    other = source.with_name("n3")
    shutil.copytree(source / "orders-0", other / "orders-0")
    shutil.copy(source / "meta.properties", other)
    rewrite(other / "orders-0", lambda records: enumerate(records[:most]), producer_id=-1)
    return other


@pytest.mark.parametrize("first", [True, False])
def test_the_replica_that_reaches_furthest_is_named(first: bool, tmp_path: Path) -> None:
    """In text and for programs, with the others, whichever comes first on the command line."""
    source, target = copied(tmp_path)
    rewrite(source / "orders-0", enumerate, producer_id=-1)
    other = second_replica(source, 200)
    sources = (source, other) if first else (other, source)
    outcome = verified(sources[0], target, "--source", str(sources[1]))
    assert (outcome.exit_code, found(outcome), outcome.messages) == (0, [], "")
    pair = pair_of(outcome, "orders")
    reason = "of 2 replicas, it reaches furthest: it ends at offset 320 of epoch 0"
    passed = [{"directory": str(other / "orders-0"), "reason": "it ends at offset 200 of epoch 0"}]
    assert pair["source_replica"] == {"directory": str(source / "orders-0"), "reason": reason, "not_compared": passed}
    alone = {"directory": str(target / "A.orders-0"), "reason": "it is the only replica here", "not_compared": []}
    assert (pair["target_replica"], pair["compared"]) == (alone, 320)
    outcome = run("verify-mirror", "--source", source, "--source", other, "--target", target)
    assert (
        f"\n  source replica {source / 'orders-0'}: {reason}\n    not {other / 'orders-0'}: it ends at" in outcome.text
    )


def test_a_replica_that_is_whole_comes_before_a_damaged_one(tmp_path: Path) -> None:
    """All is compared then, and the damage is told; without it, the damaged records are unverifiable."""
    source, target = copied(tmp_path)
    rewrite(source / "orders-0", enumerate, producer_id=-1)
    other = second_replica(source, 320)
    (log,) = (source / "orders-0").glob("*.log")
    data = bytearray(log.read_bytes())
    data[200] ^= 1
    log.write_bytes(data)
    outcome = verified(source, target, "--source", str(other))
    pair = pair_of(outcome, "orders")
    assert (outcome.exit_code, found(outcome), pair["compared"], pair["unverifiable"]) == (2, [], 320, 0)
    assert "[batch-crc]" in outcome.messages
    assert outcome.of_kind("total")[0]["findings"] == {"damaged": 1}
    outcome = verified(source, target)
    assert "[batch-crc]" in outcome.messages
    pair = pair_of(outcome, "orders")
    assert (outcome.exit_code, found(outcome), pair["compared"], pair["unverifiable"]) == (2, [], 300, 20)


def test_a_topic_that_was_made_anew_is_one_loss(tmp_path: Path) -> None:
    """The metadata say so, though MirrorMaker has written nothing since; its syncs are those of the former topic."""
    source, target = copied(tmp_path)
    recreate_orders(source, 50)
    outcome = verified(source, target)
    assert (outcome.exit_code, found(outcome)) == (
        2,
        [("mirror.source-recreated", 0, 0), ("mirror.source-recreated", 0, 0)],
    )
    (line, _) = [line for line in outcome.of_kind("finding") if line["severity"] == "data-loss"]
    assert (line["target"]["end_offset"], line["source"]["end_offset"]) == (320, 320)
    assert ": its topic id was " in line["reason"]
    assert line["reason"].endswith(", and is AAAAAAAAAAAAAAAAAKvN7w since 2026-11-21T22:26:40.000Z")


def test_a_log_of_another_topic_id_is_told(tmp_path: Path) -> None:
    """The metadata have another id than the log that is compared: the topic of that id has other records."""
    source, target = copied(tmp_path)
    kept = tmp_path / "kept"
    shutil.copytree(source / "orders-0", kept)
    recreate_orders(source, 50)
    shutil.rmtree(source / "orders-0")
    shutil.copytree(kept, source / "orders-0")
    outcome = verified(source, target)
    lost = [line for line in outcome.of_kind("finding") if line["rule"] == "mirror.source-recreated"]
    assert [line["source"]["partition"] for line in lost] == [0, 1]
    assert "orders-0 is a log of topic id" in lost[0]["reason"]


def test_what_retention_removed_before_it_was_mirrored_is_lost(tmp_path: Path) -> None:
    """Only the syncs show it: neither log has a gap. Without the source's metadata, compaction may explain it."""
    source, target = copied(tmp_path)
    outrun_by_retention(source, target)
    outcome = verified(source, target)
    assert (outcome.exit_code, found(outcome)) == (2, [("mirror.lost", 100, 100)])
    (line,) = [line for line in outcome.of_kind("finding") if line["severity"] == "data-loss"]
    assert line["reason"] == (
        "the task passed over offsets 100 to 199 of orders-0 before it mirrored to offset 100 of A.orders-0: its offset"
        " was out of range, since retention had removed them before they were mirrored"
    )
    shutil.rmtree(source / "__cluster_metadata-0")
    outcome = verified(source, target)
    assert (outcome.exit_code, found(outcome)) == (3, [("mirror.lost", 100, 100)])


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted", None])
def test_aborted_records_may_explain_what_was_passed_over(isolation: str | None, tmp_path: Path) -> None:
    """A task that leaves them out, or may do so, is only suspected of having lost what retention removed."""
    source, target = copied(tmp_path)
    outrun_by_retention(source, target)
    (configs,) = target.glob("mm2-configs.*")
    shutil.rmtree(configs)
    options = ["--source-alias", "A", "--target-alias", "B", *(["--isolation", isolation] if isolation else [])]
    outcome = verified(source, target, *options)
    is_certain = isolation == "read_uncommitted"
    # Of another topic, aborted records were mirrored.
    (line,) = [line for line in outcome.of_kind("finding") if line["source"]["topic"] == "orders"]
    assert (line["rule"], line["severity"]) == ("mirror.lost", "data-loss" if is_certain else "suspicious")
    assert (line["source"]["start_offset"], line["source"]["end_offset"]) == (100, 200)
    assert line["reason"].endswith("; or they are aborted records, which were left out") is not is_certain


def test_of_replicas_that_contradict_each_other_nothing_is_certain(tmp_path: Path) -> None:
    """What differs from the one that is compared is suspicious, since the other one may be right."""
    source, target = copied(tmp_path)
    rewrite(source / "orders-0", enumerate, producer_id=-1)
    other = second_replica(source, 320)
    rewrite(source / "orders-0", with_change(150, value=b"forked"), producer_id=-1)
    outcome = verified(source, target, "--source", str(other))
    assert (outcome.exit_code, found(outcome)) == (2, [("mirror.changed", 150, 150)])
    (line,) = [line for line in outcome.of_kind("finding") if line["rule"] == "mirror.changed"]
    assert line["severity"] == "suspicious"
    assert line["reason"].endswith("; or another replica of the source is right, and this one is not")
    assert "[replica-batch]" in outcome.messages
    assert outcome.of_kind("total")[0]["findings"] == {"damaged": 1, "suspicious": 1}


def test_a_source_made_anew_is_told_though_its_former_syncs_are_compacted_away(tmp_path: Path) -> None:
    """MirrorMaker went on, and the newest sync is left: the target's first records are of the former topic."""
    source, target = copied(tmp_path)
    recreate_orders(source, 50)

    def newest(sync: OffsetSync) -> OffsetSync | None:
        end = (320, 150)[sync.key.partition]
        is_last = sync.downstream_offset == last[sync.key.partition]
        return attrs.evolve(sync, upstream_offset=44, downstream_offset=end + 44) if is_last else None

    def note(sync: OffsetSync) -> OffsetSync:
        last[sync.key.partition] = sync.downstream_offset
        return sync

    last: dict[int, int] = {}
    move_syncs(source, "orders", note)
    move_syncs(source, "orders", newest)
    for number in (0, 1):
        rewrite(target / f"A.orders-{number}", with_records_of(source / f"orders-{number}"))
    outcome = verified(source, target)
    assert (outcome.exit_code, found(outcome)) == (2, [("mirror.source-recreated", 0, 0)] * 2)
    ends = [
        line["target"]["end_offset"] for line in outcome.of_kind("finding") if line["rule"] == "mirror.source-recreated"
    ]
    assert ends == [320, 150]


def with_records_of(partition: Path) -> Callable[[list[RecordView]], Iterator[Entry]]:
    """Records after which those of another partition follow."""
    (log,) = partition.glob("*.log")
    with open_segment(str(log)) as segment:
        more = list(segment.records())
    return lambda records: iter(list(enumerate([*records, *more])))


@pytest.mark.parametrize(
    ("side", "state"), [("source", "not-there"), ("source", "damaged"), ("target", "not-there"), ("target", "damaged")]
)
def test_what_is_not_looked_for_without_metadata_is_said(side: str, state: str, tmp_path: Path) -> None:
    """A line says so, and the page too. A hole of the target is suspicious then, since it may have been compacted."""
    source, target = copied(tmp_path)
    metadata = (source if side == "source" else target) / "__cluster_metadata-0"
    if state == "not-there":
        shutil.rmtree(metadata)
    else:
        for path in metadata.iterdir():
            if path.suffix in {".log", ".checkpoint"}:
                path.write_bytes(b"")
    rewrite(target / "A.orders-1", lambda records: (each for each in enumerate(records) if each[0] not in {50, 60, 61}))
    page = tmp_path / "page.html"
    outcome = verified(source, target, "--report", str(page))
    (flow,) = outcome.of_kind("flow")
    assert (flow[f"{side}_metadata"], flow["source_metadata" if side == "target" else "target_metadata"]) == (
        state,
        "whole",
    )
    words = f"The metadata of the {side} are {'not here' if state == 'not-there' else 'damaged'}: topics that were made"
    assert words in page.read_text()
    holes = [line for line in outcome.of_kind("finding") if line["rule"] == "mirror.hole"]
    if side == "source":
        assert [line["severity"] for line in holes] == ["data-loss"] * 2
        return
    assert [line["severity"] for line in holes] == ["suspicious"]
    assert holes[0]["reason"] == (
        "offset 50 of A.orders-1 has no record: offset 50 of orders-1 should be there; 2 later offsets have none; lost,"
        " or compacted: no metadata of the target say"
    )


def test_transforms_make_changes_suspicious(tmp_path: Path) -> None:
    """What the connector's configuration explains is not damage: a change, and another order; a loss stays one."""
    source, target = copied(tmp_path)

    def configured(records: list[RecordView]) -> Iterator[Entry]:
        for each in records:
            value = json.loads(each.value or b"null")
            if (each.key or b"").startswith(b"connector-MirrorSourceConnector") and value:
                value["properties"]["transforms"] = "mask"
            yield each.offset, Record(each.offset, each.timestamp, each.key, json.dumps(value).encode())

    rewrite(target / "mm2-configs.A.internal-0", configured)
    rewrite(target / "A.orders-0", with_change(150, value=b"masked"))
    rewrite(target / "A.orders-1", in_other_order(100))
    outcome = verified(source, target)
    rules = [rule for rule, *_ in found(outcome)]
    assert (outcome.exit_code, rules) == (3, ["mirror.changed", "mirror.reordered"])
    rewrite(target / "A.orders-1", lambda records: enumerate(records[:100]))
    assert verified(source, target).exit_code == 2
    assert verified(MIRROR / "n1", target).of_kind("flow")[0]["has_transforms"] is True
