# SPDX-License-Identifier: Apache-2.0
"""What the directories of a small quorum prove, by brute force, offset by offset and majority by majority.

It shares no code with the audit: a log is a dictionary of offsets and epochs, a majority is one of all subsets.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tests.tools.auditing.proof.past import Files, Key

Point = tuple[int, int]
"""The epoch of the last record, and the end offset."""
Snapshot = tuple[str, int, int]
"""The directory of a snapshot, and the end and the epoch in its name."""


@dataclass
class Log:
    """What one directory has: the epoch at each known offset, and what an election compares.

    ``names`` are the ends and epochs in the names of snapshots that prove something, ``wrong`` those that are wrong for
    certain, and ``doubted`` those that are not, and prove nothing: it has what they stand for. ``beside`` are epochs as
    they are known if all of these names are read the other way.
    """

    files: Files
    epochs: dict[int, int]
    whole_end: int
    end: Point
    reach: Point
    is_reach_known: bool
    can_start: bool
    voters: list[tuple[int, tuple[Key, ...], bool]]
    names: list[tuple[int, int]]
    wrong: list[tuple[int, int]]
    doubted: list[tuple[int, int]]
    beside: dict[int, int] = field(default_factory=dict)

    def last(self) -> Point:
        """The end of what it has without a gap."""
        return self.epochs.get(self.whole_end - 1, -1), self.whole_end

    def has(self, point: Point) -> bool:
        """Whether it has all records below a point."""
        epoch, end = point
        if end <= 0:
            return True
        if end > self.whole_end:
            return False
        if end - 1 in self.epochs:
            return self.epochs[end - 1] == epoch
        return not self.epochs or epoch <= self.epochs[min(self.epochs)]

    def voters_below(self, end: int) -> tuple[Key, ...]:
        """The voters in force below an offset; none if nothing names them."""
        below = [(at, is_record, keys) for at, keys, is_record in self.voters if at < end]
        return max(below, key=lambda each: each[0])[2] if below else ()

    def voters_now(self) -> tuple[Key, ...]:
        """Those that it would ask as a candidate."""
        return self.voters_below(max(self.end[1], 1))


def read(files: Files, wrong: frozenset[Snapshot] = frozenset(), unproven: frozenset[Snapshot] = frozenset()) -> Log:
    """Read a directory as a node does when it starts, which takes all names of snapshots for right."""
    snapshots = [(at, epoch) for at, epoch, _ in files.snapshots if (files.path, at, epoch) not in wrong]
    end = len(files.log) if files.rotten is None else files.rotten
    epochs = {offset: files.log[offset].epoch for offset in range(files.start, end)}
    newest = max(((epoch, at) for at, epoch in snapshots), default=(-1, 0))
    own = (epochs.get(end - 1, -1), end)
    if newest > own:
        epochs, end, own = {newest[1] - 1: newest[0]}, newest[1], newest
    claimed = max([own, *((epoch, at) for at, epoch, _ in files.snapshots)])
    covered = max((at for at, _ in snapshots), default=0)
    can_start = files.start <= max((at for at, _, _ in files.snapshots), default=0)
    is_covered = files.start <= covered
    whole_end, reach, is_known = end, own, True
    if not is_covered:
        whole_end = covered
        epochs = {at - 1: epoch for at, epoch in snapshots if at == covered}
    rot = files.rotten
    is_lost = rot is not None and max(rot + 1, _readable_end(files)) > covered
    if not is_covered or (is_lost and rot is not None):
        whole_end = covered
        if is_covered and rot is not None:
            whole_end = max(rot, covered)
            epochs = {at: epoch for at, epoch in epochs.items() if at < whole_end}
        seen = [
            each.epoch for at, each in enumerate(files.log) if files.start <= at < _readable_end(files) and at != rot
        ]
        reach = (max([epochs.get(whole_end - 1, -1), *seen[-1:]]), max(_readable_end(files), whole_end))
        is_known = reach[1] > whole_end
    voters = sorted(_named(files, claimed[1], snapshots))
    dropped = [(at, epoch) for at, epoch, _ in files.snapshots if (at, epoch) not in snapshots]
    doubted = [each for each in snapshots if (files.path, *each) in unproven]
    names = [each for each in snapshots if each not in doubted]
    return Log(files, epochs, whole_end, claimed, reach, is_known, can_start, voters, names, dropped, doubted)


def _readable_end(files: Files) -> int:
    """The end of the last record that can be read, wherever records before it have rotted."""
    return len(files.log) - (files.rotten == len(files.log) - 1)


def _named(files: Files, end: int, snapshots: Sequence[tuple[int, int]]) -> Iterator[tuple[int, tuple[Key, ...], bool]]:
    is_static = any(directory == 0 for _, directory in files.first_voters)
    readable = [at for at in range(files.start, min(end, _readable_end(files))) if at != files.rotten]
    named = [(at, each.voters, True) for at in readable if (each := files.log[at]).voters is not None]
    named += [(at - 1, voters, False) for at, epoch, voters in files.snapshots if voters and (at, epoch) in snapshots]
    named += [(-1, files.first_voters, False)] if files.is_bootstrapped and not is_static else []
    yield from named
    ids = tuple((node_id, 0) for node_id, _ in files.first_voters)
    first = min((at for at, _, _ in named), default=end)
    yield from ((at, ids, False) for at in readable if files.log[at].opens and at < first)


def misnamed(given: Sequence[Files]) -> tuple[frozenset[Snapshot], frozenset[Snapshot]]:
    """The snapshots whose names are wrong for certain, and those that are doubted, and prove nothing.

    The header of a snapshot has the time of the last record in it. Of a log, the first and the last record of each
    epoch are known, and those before and after the ends of its snapshots. Times of one epoch are compared between logs
    that begin it with the same record, as long as they have the same Voters records, and else within a directory.
    """
    names = [(files, end, epoch) for files in given for end, epoch, _ in files.snapshots]
    anywhere = {(at, files.log[at].number) for files in given for _, at in [*_seen(files), *_after_ends(files)]}
    wrong, doubted, confirmed = set(), set(), set()
    for files, end, epoch in names:
        last, times = files.times[end, epoch], _times(files, epoch, given)
        sound = {at: each.epoch for at, each in enumerate(files.log) if files.start <= at < _sound_end(files)}
        before = {time for at, time in times if at == end - 1}
        is_of_batch_after = bool(times) and (end, last) in anywhere
        is_fact = bool(before) and last not in before and not is_of_batch_after
        is_steady = all(a <= b for (one, a), (other, b) in itertools.product(times, times) if one < other)
        is_order = is_steady and any(time > last if at < end else time < last for at, time in times)
        if apart(sound, {end - 1: epoch}) is not None or (
            is_fact and (any(at == end for at, _ in anywhere) or last < min(before))
        ):
            wrong.add((files.path, end, epoch))
        elif is_fact or (is_order and not is_of_batch_after and last not in before):
            doubted.add((files.path, end, epoch))
        if before and (last in before or is_of_batch_after):
            confirmed.add((files.path, end, epoch))
    for (files, end, epoch), (others, other_end, other_epoch) in itertools.permutations(names, 2):
        one, other = (files.path, end, epoch), (others.path, other_end, other_epoch)
        are_of_one = epoch == other_epoch and _has_shared_times(files, others, epoch, given)
        if are_of_one and end < other_end and not {one, other} & wrong and not {one, other} <= confirmed:
            doubted |= {other} - confirmed if files.times[end, epoch] > others.times[other_end, epoch] else set()
    return frozenset(wrong), frozenset(doubted)


def _times(files: Files, epoch: int, given: Sequence[Files]) -> set[tuple[int, int]]:
    """The offsets and times of an epoch that are known to be of the log of some files."""
    return {
        (at, other.log[at].number)
        for other in given
        for of, at in _seen(other)
        if of == epoch and at < _end_of_shared_times(files, other, epoch, given)
    }


def _end_of_shared_times(one: Files, other: Files, epoch: int, given: Sequence[Files]) -> int:
    far = max(len(one.log), len(other.log))
    found = {_opening(files, epoch) for files in given} - {None}
    if len(found) > 1 or one is other:
        return far if len(found) < 2 else 0
    if _opening(one, epoch) is None or _opening(one, epoch) != _opening(other, epoch):
        return 0
    mine, theirs = _changes(one, epoch), _changes(other, epoch)
    return min((at for at in range(far) if mine.get(at) != theirs.get(at)), default=far)


def _has_shared_times(one: Files, other: Files, epoch: int, given: Sequence[Files]) -> bool:
    are_same = _changes(one, epoch) == _changes(other, epoch)
    return are_same and _end_of_shared_times(one, other, epoch, given) > 0


def _changes(files: Files, epoch: int) -> dict[int, tuple[Key, ...]]:
    """The Voters records of an epoch by which a majority of three or more voters cannot have been kept, or of fewer."""
    sound = range(files.start, _sound_end(files))
    named = [(at, files.log[at].voters or ()) for at in sound if files.log[at].voters]
    pairs = zip([(-1, ()), *named], named, strict=False)
    by_leader = {at for (_, old), (at, new) in pairs if len(old) > 2 and len(set(old) ^ set(new)) < 2}
    return {at: keys for at, keys in named if files.log[at].epoch == epoch and at not in by_leader}


def _opening(files: Files, epoch: int) -> tuple[int, int] | None:
    sound = range(files.start, _sound_end(files))
    found = (at for at in sound if files.log[at].epoch == epoch and files.log[at].opens)
    return next(((at, files.log[at].number) for at in found), None)


def _after_ends(files: Files) -> Iterator[tuple[int, int]]:
    ends = [end for end, _, _ in files.snapshots if files.start < end < _sound_end(files)]
    return ((files.log[end].epoch, end) for end in ends)


def _sound_end(files: Files) -> int:
    return len(files.log) if files.rotten is None else files.rotten


def _seen(files: Files) -> Iterator[tuple[int, int]]:
    """The epoch and the offset of the records whose times are known, as far as the log is sound."""
    readable = [at for at in range(files.start, len(files.log)) if at != files.rotten]
    ends = {end - 1 for end, _, _ in files.snapshots}
    for epoch in {files.log[at].epoch for at in readable}:
        mine = [at for at in readable if files.log[at].epoch == epoch]
        yield from ((epoch, at) for at in mine if at in {mine[0], mine[-1], *ends} and at < _sound_end(files))


def is_voter(key: Key, voters: Sequence[Key]) -> bool:
    """Whether a directory is one of some voters."""
    return key in voters or (key[0], 0) in voters


def of_voters(logs: Sequence[Log], voters: Sequence[Key]) -> list[Log]:
    """One directory of each voter: the one that reaches furthest, and the first of equal ones."""
    found = []
    for node_id, _ in voters:
        mine = [each for each in logs if each.files.key[0] == node_id and is_voter(each.files.key, voters)]
        if mine:
            found.append(max(mine, key=lambda each: each.end))
    return found


def majorities(voters: Sequence[Key]) -> Iterator[frozenset[int]]:
    """All majorities, as sets of ids."""
    ids = [node_id for node_id, _ in voters]
    for size in range(len(ids) // 2 + 1, len(ids) + 1):
        yield from map(frozenset, itertools.combinations(ids, size))


def fill(epochs: dict[int, int], logs: Iterable[Log]) -> dict[int, int]:
    """Add what other logs know of the offsets before: those that have the same epoch at the first known offset."""
    filled = dict(epochs)
    while filled and min(filled) > 0:
        first = min(filled)
        more = [each.epochs for each in logs if each.epochs.get(first) == filled[first] and min(each.epochs) < first]
        if not more:
            break
        lowest = min(more, key=min)
        filled |= {at: epoch for at, epoch in lowest.items() if at < first}
    return filled


def apart(one: dict[int, int], other: dict[int, int]) -> int | None:
    """The first offset at which two logs are known to differ; None if one may continue the other."""
    both = sorted(one.keys() & other.keys())
    if both:
        return next((at for at in both if one[at] != other[at]), None)
    if not one or not other:
        return None
    early, late = (one, other) if max(one) < min(other) else (other, one)
    return next((at for at in sorted(early) if early[at] > late[min(late)]), None)


@dataclass
class Answer:
    """What the oracle says; names of directories."""

    top: Point
    is_conflict: bool
    electable: set[str]
    seed_ends: Point | None
    verdict: str
    proven: set[Point]


def answer(given: Sequence[Files], leader: int | None) -> Answer:
    """Judge directories."""
    wrong, unproven = misnamed(given)
    logs = [read(files, wrong, unproven) for files in given]
    if_renamed = [read(files, wrong | unproven) for files in given]
    for log, other in zip(logs, if_renamed, strict=True):
        if log.doubted:
            log.beside, other.beside = other.epochs, log.epochs
    found = _judged(logs, leader)
    by_names = _by_names(logs, if_renamed, leader) if unproven else {found.verdict == "missing"}
    if by_names == {True}:
        return replace(found, verdict="missing")
    if by_names != {found.verdict == "missing"}:
        return replace(found, verdict="unknown")
    if found.verdict == "nothing-missing":
        trusting = (
            [replace(each, names=[*each.names, name]) if each is log else each for each in logs]
            for log in logs
            for name in log.wrong
        )
        if any(_judged(each, leader, are_all_compared=True).verdict == "missing" for each in trusting):
            return replace(found, verdict="unknown")
    return found


def _by_names(logs: Sequence[Log], if_renamed: Sequence[Log], leader: int | None) -> set[bool]:
    """Whether something is missing if doubted names are wrong, or one of them is right, or all are."""
    readings: list[Sequence[Log]] = [[pair[bool(pair[0].doubted)] for pair in zip(logs, if_renamed, strict=True)]]
    for index, log in enumerate(logs):
        for name in log.doubted:
            one = list(readings[0])
            one[index] = replace(log, names=[*log.names, name])
            readings.append(one)
    readings.append([replace(log, names=[*log.names, *log.doubted]) for log in logs])
    return {_judged(each, leader).verdict == "missing" for each in readings}


def _judged(logs: Sequence[Log], leader: int | None, *, are_all_compared: bool = False) -> Answer:
    """Judge what directories have and prove; of renamed snapshots, proofs below the first may contradict each other."""
    latest = _latest(logs)
    points = list(_proven(logs, latest))
    points.sort(key=lambda each: each[0], reverse=True)
    top = points[0][0] if points else (-1, 0)
    filled = [(point, fill(epochs, logs)) for point, epochs in points]
    pairs: Iterable[tuple[tuple[Point, dict[int, int]], ...]] = itertools.combinations(filled, 2)
    if any(each.files.renamed for each in logs) and not are_all_compared:
        pairs = ((filled[0], each) for each in filled[1:])
    is_conflict = any(apart(one, other) is not None for (_, one), (_, other) in pairs)
    usual = next(
        (each.voters_now() for each in sorted(logs, key=lambda each: each.end, reverse=True) if each.voters_now()), ()
    )
    seeds = [each for each in logs if each.can_start and each.has(top)]
    best = max((each.last() for each in seeds), default=None)
    verdict = _verdict(logs, filled, top, is_conflict=is_conflict, latest=latest, usual=usual, best=best, leader=leader)
    able = {each.files.path for each in logs if _is_elected(each, logs, usual)}
    return Answer(top, is_conflict, able, best, verdict, {point for point, _ in points})


def _latest(logs: Iterable[Log]) -> int:
    seen = [-1]
    for each in logs:
        seen += [each.reach[0], *each.epochs.values()]
        seen += [epoch for _, epoch in [*each.names, *each.doubted]]
        seen += [] if each.files.state is None else [each.files.state[0]]
    return max(seen)


def _proven(logs: Sequence[Log], latest: int) -> Iterator[tuple[Point, dict[int, int]]]:
    for each in logs:
        for end, epoch in each.names:
            if each.epochs.get(end - 1, epoch) == epoch:
                yield (epoch, end), {end - 1: epoch}
        records = [(at, keys) for at, keys, is_record in each.voters if is_record]
        for (at, before), (_, after) in itertools.pairwise(records):
            if len(set(before) ^ set(after)) == 1 and at in each.epochs:
                yield (each.epochs[at], at + 1), _below(each.epochs, at + 1)
        for at, epoch in {**each.beside, **each.epochs}.items():
            end = len(each.files.log) if at in each.beside else min(each.whole_end, len(each.files.log))
            if each.files.start <= at < end and _is_acted_on(at, each.files, logs):
                yield (epoch, at + 1), _below(each.epochs, at + 1)
    yield from _held(logs, latest)
    for each in logs:
        for at, epoch in each.epochs.items():
            if _is_rewritten(each, at):
                rest = [other for other in logs if not _has_record(other, at, epoch, each)]
                yield from _held(rest, _latest(rest))


def _held(logs: Sequence[Log], latest: int) -> Iterator[tuple[Point, dict[int, int]]]:
    for each in logs:
        for end in range(1, each.whole_end + 1):
            if each.epochs.get(end - 1) == latest and _is_held(logs, (latest, end), each.voters_below(end)):
                yield (latest, end), _below(each.epochs, end)


def _has_record(log: Log, at: int, epoch: int, rewritten: Log) -> bool:
    """Whether a log has the same record at an offset as another one, or begins after it and has the same epoch."""
    named = [keys for offset, keys, is_record in rewritten.voters if offset == at and is_record]
    if not log.epochs or min(log.epochs) > at:
        return log.has((epoch, at + 1))
    return any(offset == at and is_record and set(keys) == set(named[0]) for offset, keys, is_record in log.voters)


def _is_rewritten(log: Log, at: int) -> bool:
    """Whether a record replaces voters that are known by their directories by a set that differs in two or more."""
    files = log.files
    if not files.start <= at < len(files.log) or files.log[at].voters is None or files.log[at].opens:
        return False
    before = [(offset, keys) for offset, keys, _ in log.voters if offset < at]
    if not any(offset == at for offset, _, _ in log.voters) or not before:
        return False
    offset, keys = max(before, key=lambda each: each[0])
    is_continued = min(log.epochs) <= offset + 1
    are_known = bool(keys) and all(directory for _, directory in keys)
    return is_continued and are_known and len(set(keys) ^ set(files.log[at].voters or ())) > 1


def _is_acted_on(at: int, files: Files, logs: Iterable[Log]) -> bool:
    """Whether some broker has made the topic of a record, or the broker beside the log was registered by it."""
    number = files.log[at].number
    is_topic = number % 2 == 0 and any(number in each.files.topics for each in logs)
    return is_topic or (number % 2 == 1 and at in files.registrations)


def _below(epochs: dict[int, int], end: int) -> dict[int, int]:
    return {at: epoch for at, epoch in epochs.items() if at < end}


def _is_held(logs: Sequence[Log], point: Point, voters: Sequence[Key]) -> bool:
    """Whether some majority has all records below a point, each of them with the file that remembers its votes."""
    there = of_voters(logs, voters)
    are_all = all(any(each.files.key[0] == node_id for each in there if each.has(point)) for node_id, _ in voters)
    holders = {each.files.key[0] for each in there if each.has(point) and (are_all or each.files.state is not None)}
    return any(majority <= holders for majority in majorities(voters))


def _is_elected(candidate: Log, logs: Sequence[Log], usual: Sequence[Key]) -> bool:
    voters = candidate.voters_now() or usual
    there = of_voters(logs, voters)
    if not any(each is candidate for each in there) or not candidate.can_start:
        return False
    votes = {each.files.key[0] for each in there if each.can_start and candidate.end >= each.end}
    return any(majority <= votes for majority in majorities(voters))


def _verdict(
    logs: Sequence[Log],
    filled: Sequence[tuple[Point, dict[int, int]]],
    top: Point,
    *,
    is_conflict: bool,
    latest: int,
    usual: Sequence[Key],
    best: Point | None,
    leader: int | None,
) -> str:
    if is_conflict:
        return "missing"
    for each in logs:
        of_top = filled[0][1] if filled else {}
        differs = apart(fill(each.epochs, logs), of_top) is not None
        if filled and not each.has(top) and each.last()[0] > top[0] and differs:
            return "missing"
    at_top = _voters_at(logs, top, usual) if filled else ()
    there = {each.files.key[0]: each for each in of_voters(logs, at_top)}
    if at_top and not any(
        all(node_id not in there or there[node_id].has(top) for node_id in majority) for majority in majorities(at_top)
    ):
        return "missing"
    return _verdict_by_voters(logs, top, at_top, latest=latest, usual=usual, best=best, leader=leader)


def _voters_at(logs: Sequence[Log], top: Point, usual: Sequence[Key]) -> Sequence[Key]:
    for each in sorted(logs, key=lambda each: each.end, reverse=True):
        is_id = any((epoch, end) == top for end, epoch in each.names)
        if (is_id or each.has(top)) and each.voters_below(top[1]):
            return each.voters_below(top[1])
    return usual


def _verdict_by_voters(
    logs: Sequence[Log],
    top: Point,
    at_top: Sequence[Key],
    *,
    latest: int,
    usual: Sequence[Key],
    best: Point | None,
    leader: int | None,
) -> str:
    seeds = [each for each in logs if each.can_start and each.has(top) and each.last() == best]
    named = [each.voters_now() for each in sorted(seeds, key=lambda each: len(each.wrong) > 0)]
    voters = (named[0] if named else ()) or at_top or usual
    there = of_voters(logs, voters)
    end = best if best is not None else (top if top[1] else max(each.last() for each in logs))
    leads = [each for each in there if each.files.key[0] == leader]
    longest = max((each.last() for each in logs if each.last()[0] == latest), default=None)
    is_whole = not leads or not leads[0].is_reach_known or max(leads[0].reach, leads[0].last()) >= (longest or (-1, 0))
    if not is_whole and longest is not None and longest > top:
        return "missing"
    if not voters:
        return "unknown"
    here = {each.files.key[0] for each in there}
    whole = {each.files.key[0] for each in there if each.is_reach_known and each.reach <= end}
    known = {each.files.key[0] for each in there if each.is_reach_known}
    if all(majority & whole for majority in majorities(voters)):
        return "nothing-missing"
    if here != whole and all(majority & here for majority in majorities(voters)):
        return "missing"
    return "nothing-missing" if all(majority & known for majority in majorities(voters)) else "unknown"
