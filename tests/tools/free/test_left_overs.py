# SPDX-License-Identifier: Apache-2.0
"""What Kafka removes at startup is offered by its name, and nothing else is."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.files.file_names import SEGMENT_KINDS, FileKind, FileName, FileState, parse_file_name
from raftlog.tools.free.left_overs import PartitionNames, offer_left_overs
from raftlog.tools.free.offers import Offers
from raftlog.tools.free.rules import DELETED_FILE, ORPHAN_INDEX, PARTIAL_COMPACTION, STRAY_PRODUCERS, FreeRule
from tests.tools.free.made_directories import kept, never_offered, offered, offered_by, partition

SEGMENT = "00000000000000000000.log"
SECOND = "00000000000000000010.log"
NAMES = st.builds(
    lambda kind, state, base: str(FileName(kind, state, base_offset=base)),
    st.sampled_from(sorted(SEGMENT_KINDS, key=lambda kind: kind.value)),
    st.sampled_from([FileState.CURRENT, FileState.CURRENT, FileState.DELETED, FileState.CLEANED, FileState.SWAP]),
    st.integers(0, 4),
)


class _Named(Offers):
    """Notes offers without looking at files."""

    def offer(self, rule: FreeRule, paths: Sequence[str], detail: str = "") -> str:
        self.names |= {(rule.id, path.rpartition("/")[2]) for path in paths}
        return ""

    names: set[tuple[str, str]]


def model(names: set[str]) -> set[tuple[str, str]]:
    """What Kafka's startup removes, name by name; of deleted segments only those before the last one."""
    split = [(name, parse_file_name(name)) for name in names]
    of = [(name, each.kind, each.state, each.base_offset or 0) for name, each in split if each is not None]
    if any(state is FileState.SWAP for _, _, state, _ in of):
        return set()
    current = [(name, kind, base) for name, kind, state, base in of if state is FileState.CURRENT]
    segments = [base for _, kind, base in current if kind is FileKind.LOG]
    producers = [base for _, kind, base in current if kind is FileKind.PRODUCER_SNAPSHOT]
    found = set()
    for name, kind, state, base in of:
        if state is FileState.DELETED and segments and base < max(segments):
            found.add((DELETED_FILE.id, name))
        if state is FileState.CLEANED:
            found.add((PARTIAL_COMPACTION.id, name))
        if state is FileState.CURRENT and base not in segments and kind is not FileKind.LOG:
            if kind is not FileKind.PRODUCER_SNAPSHOT:
                found.add((ORPHAN_INDEX.id, name))
            elif base != max(producers):
                found.add((STRAY_PRODUCERS.id, name))
    return found


@given(st.sets(NAMES, max_size=12))
def test_names_are_offered_as_by_a_plain_loop(names: set[str]) -> None:
    """For every set of names, the offers are those of a model, and none of them is of a current segment."""
    offers = _Named()
    offers.names = set()
    offer_left_overs(PartitionNames.of("d", names), offers)
    assert offers.names == model(names)
    assert not any(never_offered(name) or name.endswith(".log") for _, name in offers.names)


def test_a_deleted_segment_is_offered_below_the_last_segment_only(tmp_path: Path) -> None:
    """One before the base offset of the last segment is offered; one at it or after it may be the last copy."""
    deleted = [f"{base:020}.log.deleted" for base in (9, 10, 11)]
    path = partition(tmp_path / "orders-0", SEGMENT, SECOND, *deleted)
    assert offered(path) == [("deleted-file", deleted[0])]
    assert set(kept(path)) == set(deleted[1:])
    assert all("startup removes it: copy it elsewhere first" in reason for reason in kept(path).values())


def test_without_a_segment_each_deleted_one_stays(tmp_path: Path) -> None:
    """What may be all that is left of a log is not offered."""
    path = partition(tmp_path / "orders-0", f"{SEGMENT}.deleted", "leader-epoch-checkpoint")
    assert offered(path) == []
    assert "no segment" in kept(path)[f"{SEGMENT}.deleted"]


def test_the_index_of_a_deleted_segment_goes_as_its_segment_does(tmp_path: Path) -> None:
    """Indexes of a segment that stays are neither offered nor worth a word."""
    early, late = "00000000000000000000.index.deleted", "00000000000000000010.index.deleted"
    path = partition(tmp_path / "orders-0", SECOND, early, late)
    assert offered(path) == [("deleted-file", early)]
    assert kept(path) == {}


@pytest.mark.parametrize("name", ["00000000000000000005.log.swap", "00000000000000000005.index.swap"])
def test_with_a_swap_file_nothing_is_offered(name: str, tmp_path: Path) -> None:
    """Startup decides by cleaned and swapped files together: without the first, a half result would win."""
    cleaned = f"{SEGMENT}.cleaned"
    path = partition(tmp_path / "orders-0", SEGMENT, SECOND, cleaned, f"{SEGMENT}.deleted")
    assert offered_by("partial-compaction", path) == [cleaned]
    cut_off = f"{SECOND}.deleted"
    partition(path, name, cut_off)
    assert offered(path) == []
    assert "copy it elsewhere first" in kept(path)[cut_off]


def test_an_index_without_its_segment_is_offered(tmp_path: Path) -> None:
    """Each kind of index; those beside their segment stay."""
    orphans = [f"00000000000000000005{kind}" for kind in (".index", ".timeindex", ".txnindex")]
    path = partition(tmp_path / "orders-0", SEGMENT, "00000000000000000000.index", *orphans)
    assert offered(path) == [("orphan-index", name) for name in orphans]


def test_the_newest_producer_snapshot_stays(tmp_path: Path) -> None:
    """Of those without a segment all but the newest are offered, and those of a segment of a topic never."""
    names = [f"{base:020}.snapshot" for base in (0, 4, 7)]
    path = partition(tmp_path / "orders-0", SEGMENT, *names)
    assert offered(path) == [("stray-producers", names[1])]


@pytest.mark.parametrize("suffix", ["damaged-70", "torn-5-1", "superseded-00000000000000000003-0000000001"])
def test_bytes_that_were_set_aside_are_never_offered(suffix: str, tmp_path: Path) -> None:
    """They may be the last copy; only an unfinished copy of them is offered."""
    path = partition(tmp_path / "orders-0", SEGMENT, f"{SEGMENT}.{suffix}", f"{SEGMENT}.damaged-7-0.tmp")
    assert offered(path) == [("half-copied", f"{SEGMENT}.damaged-7-0.tmp")]
    assert set(kept(path)) == {f"{SEGMENT}.{suffix}"}
