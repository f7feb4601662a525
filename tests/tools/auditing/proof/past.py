# SPDX-License-Identifier: Apache-2.0
"""Small quorums with a past: what a few nodes did, and the directories that they left.

This is a model of Kafka's rules in plain lists and tuples, which shares no code with the library: a leader counts its
own records before it has flushed them, followers flush before they fetch again, votes are stored, snapshots have
committed records only. Then things happen to the directories that no rule allows.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

Key = tuple[int, int]
"""A node id and a directory; 0 for a static voter, of which only the id is known."""


@dataclass(frozen=True)
class Record:
    """A record; the voters are those that it puts in force, if it is a Voters record.

    Its number is greater than those of all that were written before, by whomever: it is also the time in ms.
    """

    number: int
    epoch: int
    voters: tuple[Key, ...] | None = None
    opens: bool = False


@dataclass
class Files:
    """A directory that a node left.

    ``start`` is the first offset of the log; ``log`` has all records from offset 0 on, even below it. From ``rotten``
    on, records cannot be read. As a broker, the node has acted on the records with the numbers ``topics``, and on some
    at the offsets ``registrations``, of which nothing says which records these were. ``times`` has what
    the header of each snapshot says by the end and the epoch in its name: the number of the last record in it; those of
    ``renamed`` have another end in their names than they were written under.
    """

    path: str
    key: Key
    log: list[Record]
    start: int = 0
    snapshots: list[tuple[int, int, tuple[Key, ...]]] = field(default_factory=list)
    state: tuple[int, int] | None = (0, -1)
    rotten: int | None = None
    is_bootstrapped: bool = True
    first_voters: tuple[Key, ...] = ()
    topics: frozenset[int] = frozenset()
    registrations: frozenset[int] = frozenset()
    times: dict[tuple[int, int], int] = field(default_factory=dict)
    renamed: set[tuple[int, int]] = field(default_factory=set)


@dataclass
class Node:
    """A node that runs; ``flushed`` records of its log survive a power cut."""

    files: Files
    flushed: int = 0
    high_watermark: int = 0
    voted: int = -1
    first_voters: tuple[Key, ...] = ()

    def voters(self) -> tuple[Key, ...]:
        """The voters in force, committed or not."""
        return next((each.voters for each in reversed(self.files.log) if each.voters is not None), self.first_voters)

    def end(self) -> tuple[int, int]:
        """Epoch of the last record, and the end of the log."""
        return (self.files.log[-1].epoch if self.files.log else -1), len(self.files.log)


@dataclass
class Past:
    """What happened, and what is left of it.

    ``committed`` are numbers of records that a leader has counted on a majority, ``cut_off`` those that a power cut
    took from a leader that had counted them. ``final`` are all directories, ``given`` those that the audit gets.
    ``is_honest`` says that nothing happened that no rule allows, and that the directories are of one moment.
    """

    first_voters: tuple[Key, ...]
    final: list[Files]
    given: list[Files]
    committed: set[int]
    cut_off: set[int]
    is_honest: bool
    leader: int | None


class Quorum:
    """A quorum that runs, one step at a time."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        count = chance.choice((1, 2, 3, 3, 3, 4, 4, 5))
        self.is_static = chance.random() < 0.15
        self.first_voters = tuple((each, 0 if self.is_static else each * 10) for each in range(1, count + 1))
        ids = range(1, count + 1 + chance.choice((0, 1, 1, 2)))
        self.nodes = {each: self._node(each, each * 10) for each in ids}
        self.leader: int | None = None
        self.epoch = 0
        self.number = 0
        self.committed: set[int] = set()
        self.cut_off: set[int] = set()
        self.copies: list[Files] = []
        self.is_honest = True

    def _node(self, node_id: int, directory: int) -> Node:
        files = Files(f"n{node_id}-{directory}", (node_id, directory), [], first_voters=self.first_voters)
        files.is_bootstrapped = (node_id, directory) in self.first_voters or self.is_static
        return Node(files, first_voters=self.first_voters)

    # Steps that the rules allow

    def elect(self) -> None:
        """Let a node stand for election, with whoever it reaches."""
        candidate = self.chance.choice(list(self.nodes.values()))
        voters = candidate.voters()
        if not _is_voter(candidate.files.key, voters):
            return
        reached = [each for each in self.nodes.values() if self.chance.random() < 0.8 or each is candidate]
        epoch = max((candidate.files.state or (0, -1))[0], candidate.end()[0], 0) + 1
        granting = []
        for node in reached:
            known = (node.files.state or (0, -1))[0]
            has_chosen = node.voted != -1 or (node.files.state or (0, -1))[1] != -1
            if not _is_voter(node.files.key, voters) or known > epoch or (known == epoch and has_chosen):
                continue
            node.files.state, node.voted = (epoch, -1), -1
            if node.end() <= candidate.end():
                node.voted = candidate.files.key[0]
                granting.append(node)
        if len(granting) <= len(voters) // 2:
            return
        self.leader, self.epoch = candidate.files.key[0], epoch
        candidate.files.state = (epoch, self.leader)
        is_first = not candidate.files.log and not self.is_static
        self._append(self.first_voters if is_first else None, opens=not is_first)

    def append(self) -> None:
        """Let the leader append a record."""
        self._append(None)

    def _append(self, voters: tuple[Key, ...] | None, *, opens: bool = False) -> None:
        if self.leader is not None:
            self.number += 1
            self.nodes[self.leader].files.log.append(Record(self.number, self.epoch, voters, opens))

    def fetch(self) -> None:
        """Let a node fetch a few records from the leader, and flush them."""
        if self.leader is None:
            return
        leader, node = self.nodes[self.leader], self.chance.choice(list(self.nodes.values()))
        known = (node.files.state or (0, -1))[0]
        if node is leader or known > self.epoch:
            return
        if known < self.epoch or node.files.state is None:
            node.voted = -1
        node.files.state = (self.epoch, self.leader)
        mine, theirs = node.files.log, leader.files.log
        same = 0
        while same < min(len(mine), len(theirs)) and mine[same] == theirs[same]:
            same += 1
        if same < len(mine):
            if same < node.high_watermark or any(end > same for end, _, _ in node.files.snapshots):
                return  # It does not truncate what it knows to be committed.
            del mine[same:]
        mine += theirs[same : same + self.chance.choice((1, 2, 9))]
        node.flushed = len(mine)
        node.high_watermark = max(node.high_watermark, min(len(mine), leader.high_watermark))

    def commit(self) -> None:
        """Let the leader count what a majority of its voters has, its own unflushed records too."""
        if self.leader is None:
            return
        leader = self.nodes[self.leader]
        log, voters = leader.files.log, leader.voters()
        for end in range(len(log), leader.high_watermark, -1):
            holders = [
                each
                for each in self.nodes.values()
                if _is_voter(each.files.key, voters)
                and each.files.log[:end] == log[:end]
                and (each is leader or (each.files.state or (0, -1))[0] == self.epoch)
            ]
            if log[end - 1].epoch == self.epoch and len(holders) > len(voters) // 2:
                leader.high_watermark = end
                self.committed |= {each.number for each in log[:end]}
                return

    def flush(self) -> None:
        """Let the leader flush its log."""
        if self.leader is not None:
            node = self.nodes[self.leader]
            node.flushed = len(node.files.log)

    def change(self) -> None:
        """Let the leader add or remove a voter, if the change before is committed, and something of its epoch."""
        if self.leader is None or self.is_static:
            return
        leader = self.nodes[self.leader]
        log, voters = leader.files.log, leader.voters()
        last = max((at for at, each in enumerate(log) if each.voters is not None), default=-1)
        if leader.high_watermark <= last or not any(each.epoch == self.epoch for each in log[: leader.high_watermark]):
            return
        outside = [each.files.key for each in self.nodes.values() if each.files.key[0] not in dict(voters)]
        if outside and self.chance.random() < 0.6:
            self._append(tuple(sorted((*voters, self.chance.choice(outside)))))
        elif len(voters) > 1:
            gone = self.chance.choice(voters)
            self._append(tuple(each for each in voters if each != gone))

    def snapshot(self) -> None:
        """Let a node write a snapshot at its high watermark, and perhaps drop its log below."""
        node = self.chance.choice(list(self.nodes.values()))
        end = node.high_watermark
        if end > max((each[0] for each in node.files.snapshots), default=0):
            below = [each.voters for each in node.files.log[:end] if each.voters is not None]
            named = below[-1] if below else (() if self.is_static else self.first_voters)
            last = node.files.log[end - 1]
            node.files.snapshots.append((end, last.epoch, named))
            node.files.times[end, last.epoch] = last.number
            if self.chance.random() < 0.4:
                node.files.start = end if end < len(node.files.log) else end - 1

    def act(self) -> None:
        """Let a node act, as a broker, on the last record that it knows to be committed."""
        node = self.chance.choice(list(self.nodes.values()))
        if node.high_watermark > 0:
            at = node.high_watermark - 1
            act(node.files, at)

    def power_cut(self) -> None:
        """Let a node lose what it had not flushed."""
        node = self.chance.choice(list(self.nodes.values()))
        gone = {each.number for each in node.files.log[node.flushed :]}
        self.cut_off |= gone & self.committed
        del node.files.log[node.flushed :]
        node.files.snapshots = [each for each in node.files.snapshots if each[0] <= node.flushed]
        node.files.start = min(node.files.start, len(node.files.log))
        node.high_watermark = min(node.high_watermark, node.flushed)
        if node.files.key[0] == self.leader:
            self.leader = None

    # Steps that no rule allows

    def replace_directory(self) -> None:
        """Replace a node's disk by an empty one, with a directory id of its own."""
        node_id = self.chance.choice(list(self.nodes))
        old = self.nodes[node_id]
        fresh = self._node(node_id, old.files.key[1] + 1)
        fresh.files.state = None
        if not self.is_static:
            fresh.files.is_bootstrapped = False
        self.nodes[node_id] = fresh
        self.is_honest &= not self.is_static
        self.leader = None if self.leader == node_id else self.leader

    def copy(self) -> None:
        """Copy a directory while the node runs."""
        files = self.chance.choice(list(self.nodes.values())).files
        self.copies.append(_copy_of(files, f"{files.path}-copy{len(self.copies)}"))

    def rewrite(self) -> None:
        """Name one node the only voter, by hand, in the last epoch of its log, and let it lead."""
        node = self.chance.choice(list(self.nodes.values()))
        if self.is_static or not node.files.log:
            return
        self.is_honest = False
        self.number += 1
        node.files.log.append(Record(self.number, node.end()[0], (node.files.key,)))
        epoch = max((node.files.state or (0, -1))[0], node.end()[0]) + 1
        node.files.state = (epoch, node.files.key[0])
        self.leader, self.epoch = node.files.key[0], epoch
        self._append(None, opens=True)
        node.flushed = len(node.files.log)


def act(files: Files, offset: int) -> None:
    """Act on a record of a log: a topic's, if its number is even, else a registration, known by its offset alone."""
    number = files.log[offset].number
    if number % 2 == 0:
        files.topics |= {number}
    else:
        files.registrations |= {offset}


def _is_voter(key: Key, voters: Sequence[Key]) -> bool:
    return key in voters or (key[0], 0) in voters


def _copy_of(files: Files, path: str | None = None) -> Files:
    snapshots, times = list(files.snapshots), dict(files.times)
    return replace(files, path=path or files.path, log=list(files.log), snapshots=snapshots, times=times)


def make_past(seed: int, renaming: float = 0.2) -> Past:
    """Return a quorum's past, by a number; with a given probability, one of its snapshots was renamed."""
    chance = random.Random(seed)
    quorum = Quorum(chance)
    usual = [quorum.append, quorum.append, quorum.fetch, quorum.fetch, quorum.fetch, quorum.fetch, quorum.commit]
    usual += [quorum.commit, quorum.flush, quorum.snapshot, quorum.change, quorum.elect]
    usual += [quorum.act]
    rare = [quorum.power_cut, quorum.replace_directory, quorum.copy, quorum.rewrite]
    quorum.elect()
    for _ in range(chance.randrange(6, 60)):
        chance.choice(rare if chance.random() < 0.04 else usual)()
    if chance.random() < 0.2:
        quorum.power_cut()
    final = [_copy_of(node.files) for node in quorum.nodes.values()]
    given = [_copy_of(files) for files in final]
    is_honest = quorum.is_honest
    for stale in quorum.copies:
        is_honest = False
        given = [each for each in given if each.key != stale.key or chance.random() < 0.5] + [stale]
    if chance.random() < 0.3:
        is_honest = False
        for files in chance.sample(given, chance.randrange(1, len(given) + 1)):
            _spoil(files, chance)
    kept = chance.sample(given, chance.randrange(1, len(given) + 1)) if chance.random() < 0.7 else given
    is_honest &= not _rename(kept, random.Random(-seed - 1), renaming)
    leaders = {each.state for each in kept if each.state is not None and each.state[1] >= 0}
    latest = max([each.state[0] for each in kept if each.state] + [_last_epoch(each) for each in kept])
    leader = next((leader for epoch, leader in sorted(leaders) if epoch == latest), None)
    return Past(quorum.first_voters, final, kept, quorum.committed, quorum.cut_off, is_honest, leader)


def _rename(given: Sequence[Files], chance: random.Random, share: float) -> bool:
    """Sometimes give a snapshot another end in its name; return whether one was renamed."""
    found = [(files, index) for files in given for index in range(len(files.snapshots))]
    if not found or chance.random() < 1 - share:
        return False
    files, index = chance.choice(found)
    end, epoch, voters = files.snapshots[index]
    other = max(1, end + chance.choice((-5, -2, -1, 1, 2, 5, 20)))
    if any((other, epoch) == each[:2] for each in files.snapshots):
        return False
    files.snapshots[index] = (other, epoch, voters)
    files.snapshots.sort()
    files.renamed = {(other, epoch)}
    files.times[other, epoch] = files.times[end, epoch]
    return True


def _last_epoch(files: Files) -> int:
    return max([each.epoch for each in files.log] + [epoch for _, epoch, _ in files.snapshots], default=-1)


def _spoil(files: Files, chance: random.Random) -> None:
    """Cut a log, let a record rot, or lose snapshots or quorum-state."""
    match chance.randrange(5):
        case 0 if len(files.log) > files.start:
            del files.log[chance.randrange(files.start, len(files.log)) :]
        case 1 if len(files.log) > files.start:
            files.rotten = chance.randrange(files.start, len(files.log))
        case 2:
            files.snapshots = []
        case 3:
            files.state = None
        case _:
            del files.log[max(files.start, len(files.log) - 2) :]
            files.snapshots = [each for each in files.snapshots if each[0] <= len(files.log)]
