# SPDX-License-Identifier: Apache-2.0
"""What happens in a run, event by event, for people: messages, faults, roles, and what becomes committed.

A story is told only if somebody asks for it: most runs have none.
"""

from collections.abc import Iterator
from typing import Any, Final

import attrs

from raftlog.records.messages.raft.error_codes import ErrorCode

_SHOWN_FIELDS: Final = {
    "pre_vote": "pre-vote",
    "replica_epoch": "epoch",
    "current_leader_epoch": "epoch",
    "leader_epoch": "epoch",
    "last_epoch_end_offset": "log end",
    "fetch_offset": "offset",
    "position": "position",
    "vote_granted": "granted",
    "high_watermark": "high watermark",
    "voter_id": "voter",
    "error_code": "error",
}
"""Fields of messages that are worth a place in a line, and what they are called there."""
_ERROR_CODES: Final = frozenset(int(each) for each in ErrorCode)
_MAX_ERROR_LENGTH: Final = 200
_STOPPED: Final = "stopped"


@attrs.frozen(kw_only=True)
class StoryEvent:
    """Something that happens.

    Attributes:
        at_ms: when, in virtual time.
        replica: id of the replica that it happens to; 0 for the whole network, or for a client.
        words: what happens.
        kind: ``sent``, ``arrived``, ``lost``, ``role``, ``high-watermark``, ``fault``, ``client`` or ``violation``.
        sender: of a message, its sender's id, else 0.
        message: of a message: its number, the same for a request as it is sent and as it arrives.
    """

    at_ms: int
    replica: int
    words: str
    kind: str
    sender: int = 0
    message: int = 0

    def __str__(self) -> str:
        who = "network" if self.replica == 0 else f"replica {self.replica}"
        if self.sender:
            who = f"{self.sender} -> {self.replica}"
        return f"{self.at_ms:>7,} ms  {who:<11} {self.words}"


@attrs.frozen(kw_only=True)
class ReplicaState:
    """A replica after something has happened to it.

    Attributes:
        at_ms: when, in virtual time.
        replica: its id.
        role: in lower case; ``stopped`` if it has no process.
        epoch: the latest one that it knows; that of a stopped replica is the last one that it knew.
        end: of its log, exclusive.
        durable_end: the end, exclusive, of what it has synced.
        high_watermark: exclusive; 0 if it is not known.
    """

    at_ms: int
    replica: int
    role: str = "stopped"
    epoch: int = 0
    end: int = 0
    durable_end: int = 0
    high_watermark: int = 0


class Story:
    """Takes down what happens.

    Attributes:
        events: so far, in order.
        states: one each time that the state of a replica has changed, in order.
    """

    def __init__(self) -> None:
        self.events: list[StoryEvent] = []
        self.states: list[ReplicaState] = []
        self._latest: dict[int, ReplicaState] = {}
        self._messages = 0

    def sent(self, at_ms: int, sender: int, receiver: int, deliver: str, arguments: tuple[Any, ...]) -> int:
        """Note that a message was sent, and return its number."""
        self._messages += 1
        self._tell_of_message("sent", at_ms, sender, receiver, _message_words(deliver, arguments), self._messages)
        return self._messages

    def arrived(
        self, at_ms: int, sender: int, receiver: int, number: int, deliver: str, arguments: tuple[Any, ...]
    ) -> None:
        """Note that a message has arrived."""
        self._tell_of_message("arrived", at_ms, sender, receiver, _message_words(deliver, arguments), number)

    def lost(
        self, at_ms: int, sender: int, receiver: int, number: int, deliver: str, arguments: tuple[Any, ...]
    ) -> None:
        """Note that a message does not arrive."""
        self._tell_of_message("lost", at_ms, sender, receiver, _message_words(deliver, arguments) + " is lost", number)

    def _tell_of_message(self, kind: str, at_ms: int, sender: int, receiver: int, words: str, number: int) -> None:
        event = StoryEvent(at_ms=at_ms, replica=receiver, words=words, kind=kind, sender=sender, message=number)
        self.events.append(event)

    def fault(self, at_ms: int, replica: int, words: str) -> None:
        """Note a fault, or its end."""
        self.events.append(StoryEvent(at_ms=at_ms, replica=replica, words=words, kind="fault"))

    def client(self, at_ms: int, replica: int, words: str) -> None:
        """Note what a client does, or is told."""
        self.events.append(StoryEvent(at_ms=at_ms, replica=replica, words=words, kind="client"))

    def settled(self, state: ReplicaState) -> None:
        """Note the state of a replica, if it has changed."""
        before = self._latest.get(state.replica, ReplicaState(at_ms=0, replica=state.replica))
        if attrs.evolve(state, at_ms=before.at_ms) == before:
            return
        if (before.role, before.epoch) != (state.role, state.epoch) and state.role != _STOPPED:
            self._tell_of_replica(state, f"is {state.role}, epoch {state.epoch}", "role")
        if before.high_watermark != state.high_watermark and state.high_watermark:
            self._tell_of_replica(state, f"high watermark {state.high_watermark}", "high-watermark")
        self._latest[state.replica] = state
        self.states.append(state)

    def _tell_of_replica(self, state: ReplicaState, words: str, kind: str) -> None:
        self.events.append(StoryEvent(at_ms=state.at_ms, replica=state.replica, words=words, kind=kind))

    def stopped(self, at_ms: int, replica: int, end: int) -> None:
        """Note that the process of a replica has ended.

        Args:
            at_ms: when.
            replica: its id.
            end: of its log, exclusive, which is durable.
        """
        before = self._latest.get(replica, ReplicaState(at_ms=0, replica=replica))
        self.settled(ReplicaState(at_ms=at_ms, replica=replica, epoch=before.epoch, end=end, durable_end=end))

    def violated(self, at_ms: int, words: str) -> None:
        """Note the violation at the end."""
        first_line = words.strip().splitlines()[-1][:_MAX_ERROR_LENGTH]
        self.events.append(StoryEvent(at_ms=at_ms, replica=0, words=first_line, kind="violation"))


def _message_words(deliver: str, arguments: tuple[Any, ...]) -> str:
    envelope, *response = arguments
    if deliver == "request_failed":
        return f"{_name(envelope.request)} refused: no process"
    message = response[0] if response else envelope.request
    fields = " ".join(_shown(message))
    return f"{_name(message)} {fields}".rstrip()


def _name(message: object) -> str:
    return type(message).__name__.removesuffix("Request").replace("Response", " response")


def _shown(message: Any) -> Iterator[str]:
    """Yield the fields of a message and of its only partition that are worth a place."""
    told = set()
    for part in (message, *_partitions(message)):
        for name, word in _SHOWN_FIELDS.items():
            value = getattr(part, name, None)
            is_dull = value is None or value is False or (name in {"error_code", "position"} and value == 0)
            if not is_dull and value != -1 and word not in told:
                told.add(word)
                yield word if value is True else f"{word} {_named_error(value) if name == 'error_code' else value}"


def _named_error(code: Any) -> str:
    """Return the number of an error with its name, as Kafka has it."""
    return f"{code} {ErrorCode(code).name}" if code in _ERROR_CODES else str(code)


def _partitions(message: Any) -> Iterator[Any]:
    for topic in getattr(message, "topics", ()) or getattr(message, "responses", ()):
        yield from topic.partitions
        for partition in topic.partitions:
            leader = getattr(partition, "current_leader", None)
            if leader is not None:
                yield leader
