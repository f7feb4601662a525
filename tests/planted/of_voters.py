# SPDX-License-Identifier: Apache-2.0
"""Voter sets and kraft.versions that cannot be, written with care: CRCs hold, and no other replica disagrees."""

import itertools
import uuid
from collections.abc import Callable
from pathlib import Path

import attrs

from raftlog.records.messages.control import (
    ControlValue,
    KRaftVersionRecord,
    LeaderChangeMessage,
    VotersRecord,
    VotersRecordEndpoint,
    VotersRecordVoter,
)
from tests.planted.fault import Faults, Spot
from tests.planted.ground import DYNAMIC, METADATA, QUORUMS, Ground
from tests.planted.segments import (
    Segment,
    control_batch,
    control_batch_with,
    control_values,
    data_batch,
    forget_snapshots,
    with_base_offset,
)

FAULTS = Faults("voters")

_Voters = tuple[VotersRecordVoter, ...]
_UPGRADED = 160
"""Where kraft.version becomes 1 on the ground ``static``."""


def _forge(
    ground: Ground,
    change: Callable[[_Voters], _Voters],
    *,
    counts: tuple[int, ...] = (3, 4),
    is_last: bool = False,
) -> Spot:
    """Replace a data batch by a Voters record with a change of the voters in force.

    Args:
        ground: to plant on.
        change: makes the voters.
        counts: possible numbers of voters before.
        is_last: whether nothing after it may name voters, which would follow from this set.
    """
    kept = ground.alone()
    sets = _voters(kept / METADATA)
    starts = sorted(sets)
    start, end = ground.pick(
        (start, end)
        for start, end in itertools.zip_longest(starts, starts[1:], fillvalue=1 << 62)
        if len(sets[start]) in counts and not (is_last and start != starts[-1])
    )
    segment, index = data_batch(ground, record_count=1, from_offset=start + 1, to_offset=end, is_inside_epoch=True)
    if is_last:
        forget_snapshots(kept / METADATA, segment.view(index).base_offset)
    return _put(segment, index, [VotersRecord(change(sets[start]))])


def _voters(log: Path) -> dict[int, _Voters]:
    """Return the voter sets of a log by the offsets of their batches."""
    found: dict[int, _Voters] = {}
    for path in sorted(log.glob("*.log")):
        segment = Segment(path)
        for index, batch in enumerate(segment.views()):
            if batch.is_control:
                for value in control_values(segment.batches[index]):
                    if isinstance(value, VotersRecord):
                        found[batch.base_offset] = value.voters
    return found


def _put(segment: Segment, index: int, values: list[ControlValue]) -> Spot:
    segment.batches[index] = control_batch(segment.batches[index], values)
    segment.save()
    return segment.spot(index)


def _other(voter: VotersRecordVoter, voter_id: int) -> VotersRecordVoter:
    return attrs.evolve(voter, id=voter_id, directory_id=uuid.UUID(int=voter_id * 77))


def _moved(voter: VotersRecordVoter) -> VotersRecordVoter:
    return attrs.evolve(voter, endpoints=tuple(attrs.evolve(each, port=7777) for each in voter.endpoints))


@FAULTS.kind("voters-overlap", on=QUORUMS)
def voters_swapped(ground: Ground) -> Spot:
    """One of three voters is replaced by another: Kafka would accept it, but it is not safe."""
    return _forge(ground, lambda voters: (*voters[:-1], _other(voters[-1], 9)), counts=(3,))


@FAULTS.kind("voters-one-change", on=DYNAMIC)
def voters_swapped_of_four(ground: Ground) -> Spot:
    """One of four voters is replaced by another, which is safe, but is two changes at once."""
    return _forge(ground, lambda voters: (*voters[:-1], _other(voters[-1], 9)), counts=(4,))


@FAULTS.kind("voters-accepted", on=QUORUMS)
def voters_two_added(ground: Ground) -> Spot:
    """A voter set adds two voters at once."""
    return _forge(ground, lambda voters: (*voters, _other(voters[0], 8), _other(voters[0], 9)))


@FAULTS.kind("voters-accepted", on=QUORUMS)
def voters_two_removed(ground: Ground) -> Spot:
    """A voter set removes two voters at once."""
    return _forge(ground, lambda voters: voters[2:], counts=(3,))


def _append(ground: Ground, change: Callable[[_Voters], _Voters]) -> Spot:
    """Append a Voters record with a change of the voters in force to the end of a log."""
    log = ground.alone() / METADATA
    sets = _voters(log)
    segment = Segment(max(log.glob("*.log")))
    last = segment.view(-1)
    segment.batches.append(with_base_offset(segment.batches[-1], last.next_offset))
    return _put(segment, len(segment.batches) - 1, [VotersRecord(change(sets[max(sets)]))])


@FAULTS.kind("voters-rewritten", on=QUORUMS)
def voters_rewritten_to_fewer(ground: Ground) -> Spot:
    """After the last record of a log, the voters become the first of them alone, or with another one."""
    return _append(
        ground,
        lambda voters: voters[:1] if len(voters) > 2 else (*voters[:1], *(_other(each, 8) for each in voters[1:])),
    )


@FAULTS.kind("voters-rewritten", on=QUORUMS)
def voters_rewritten_to_others(ground: Ground) -> Spot:
    """After the last record of a log, all voters are replaced by others."""
    return _append(ground, lambda voters: tuple(_other(voter, voter.id + 50) for voter in voters))


@FAULTS.kind("voters-schema", on=QUORUMS)
def voters_with_one_twice(ground: Ground) -> Spot:
    """A voter set has the same voter twice."""
    return _forge(ground, lambda voters: (*voters, attrs.evolve(voters[0], directory_id=uuid.UUID(int=5))))


@FAULTS.kind("voters-schema", on=QUORUMS)
def voters_of_one_directory(ground: Ground) -> Spot:
    """A voter set has two voters with the same directory id."""
    return _forge(ground, lambda voters: (*voters, attrs.evolve(voters[0], id=9)))


@FAULTS.kind("voters-schema", on=QUORUMS)
def voters_with_a_negative_id(ground: Ground) -> Spot:
    """A voter set adds a voter with a negative id."""
    return _forge(ground, lambda voters: (*voters, attrs.evolve(_other(voters[0], 9), id=-9)))


@FAULTS.kind("voters-schema", on=QUORUMS)
def voters_none(ground: Ground) -> Spot:
    """A voter set is empty."""
    return _forge(ground, lambda voters: ())


@FAULTS.kind("voters-schema", on=QUORUMS)
def voters_with_a_listener_twice(ground: Ground) -> Spot:
    """A voter set has a voter with two listeners of the same name."""
    twice = VotersRecordEndpoint("CONTROLLER", "elsewhere", 9093)
    return _forge(
        ground, lambda voters: (attrs.evolve(voters[0], endpoints=(*voters[0].endpoints, twice)), *voters[1:])
    )


@FAULTS.kind("voters-one-change", on=QUORUMS)
def voters_two_updated(ground: Ground) -> Spot:
    """A voter set has two voters with new endpoints at once."""
    return _forge(ground, lambda voters: (*map(_moved, voters[:2]), *voters[2:]))


@FAULTS.kind("voters-range", on=QUORUMS)
def voters_of_other_versions(ground: Ground) -> Spot:
    """A voter set has a voter that does not support the kraft.version in force."""
    return _forge(ground, lambda voters: (attrs.evolve(voters[0], max_supported_version=0), *voters[1:]), is_last=True)


@FAULTS.kind("voters-version", on=("static",))
def voters_at_version_0(ground: Ground) -> Spot:
    """A metadata log has a Voters record before kraft.version is 1."""
    kept = ground.alone()
    voters = _voters(kept / METADATA)[_UPGRADED]
    segment, index = data_batch(ground, record_count=1, to_offset=_UPGRADED)
    return _put(segment, index, [VotersRecord(voters)])


@FAULTS.kind("voters-uncommitted", on=DYNAMIC)
def voters_changed_by_a_new_leader(ground: Ground) -> Spot:
    """The batch of a LeaderChange changes the voters too, before anything of its epoch is committed."""
    kept = ground.alone()
    sets = _voters(kept / METADATA)
    changes = [offset for offset in sorted(sets) if offset > 2]
    segment, index = control_batch_with(ground, LeaderChangeMessage, from_offset=changes[-2])
    offset = segment.view(index).base_offset
    voters = sets[max(each for each in sets if each < offset)]
    left = {voter.id for voter in voters} - {voter.id for voter in sets[changes[-1]]}  # Who is gone is not missed.
    forget_snapshots(kept / METADATA, offset)
    change = control_values(segment.batches[index])[0]
    assert isinstance(change, LeaderChangeMessage)
    del segment.batches[index + 1]
    return _put(
        segment, index, [change, VotersRecord(tuple(_moved(each) if each.id in left else each for each in voters))]
    )


@FAULTS.kind("voters-uncommitted", on=DYNAMIC)
def voters_changed_again_at_once(ground: Ground) -> Spot:
    """A voter is added in the millisecond of the change before, which no other voter can have written by then."""
    kept = ground.alone()
    sets = _voters(kept / METADATA)
    last = max(sets)
    segment, index = data_batch(ground, record_count=1, from_offset=last + 1)
    forget_snapshots(kept / METADATA, segment.view(index).base_offset)
    logs = map(Segment, (kept / METADATA).glob("*.log"))
    time = next(each.max_timestamp for log in logs for each in log.views() if each.base_offset == last)
    record = VotersRecord((*sets[last], _other(sets[last][0], 9)))
    segment.batches[index] = control_batch(segment.batches[index], [record], base_timestamp=time, max_timestamp=time)
    segment.save()
    return segment.spot(index)


@FAULTS.kind("kraft-version-order", on=DYNAMIC)
def kraft_version_back(ground: Ground) -> Spot:
    """kraft.version goes from 1 back to 0."""
    ground.alone()
    return _put(*data_batch(ground, record_count=1), [KRaftVersionRecord(0)])


@FAULTS.kind("kraft-version-known", on=QUORUMS)
def kraft_version_unknown(ground: Ground) -> Spot:
    """kraft.version becomes 7."""
    ground.alone()
    return _put(*data_batch(ground, record_count=1), [KRaftVersionRecord(7)])


@FAULTS.kind("kraft-version-voters", on=("static",))
def kraft_version_without_voters(ground: Ground) -> Spot:
    """kraft.version becomes 1, without a Voters record in its batch."""
    ground.alone()
    segment, index = data_batch(ground, record_count=1, from_offset=_UPGRADED - 30, to_offset=_UPGRADED)
    return _put(segment, index, [KRaftVersionRecord(1)])
