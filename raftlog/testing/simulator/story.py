# SPDX-License-Identifier: Apache-2.0
"""What happens in a run, event by event, for people: messages, faults, roles, and what becomes committed.

A story is told only if somebody asks for it: most runs have none.
"""

from collections.abc import Iterator
from typing import Any, Final

import attrs

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
_MAX_ERROR_LENGTH: Final = 200


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


class Story:
    """Takes down what happens.

    Attributes:
        events: so far, in order.
    """

    def __init__(self) -> None:
        self.events: list[StoryEvent] = []
        self._states: dict[int, tuple[object, ...]] = {}
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

    def settled(self, at_ms: int, replica: int, role: str, epoch: int, high_watermark: int | None) -> None:
        """Note the state of a replica, if it has changed."""
        before = self._states.get(replica, (None, None, None))
        if before[:2] != (role, epoch):
            words = f"is {role.lower()}, epoch {epoch}"
            self.events.append(StoryEvent(at_ms=at_ms, replica=replica, words=words, kind="role"))
        if before[2] != high_watermark and high_watermark:
            words = f"high watermark {high_watermark}"
            self.events.append(StoryEvent(at_ms=at_ms, replica=replica, words=words, kind="high-watermark"))
        self._states[replica] = role, epoch, high_watermark

    def stopped(self, replica: int) -> None:
        """Forget the state of a replica whose process has ended."""
        self._states.pop(replica, None)

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
                yield word if value is True else f"{word} {value}"


def _partitions(message: Any) -> Iterator[Any]:
    for topic in getattr(message, "topics", ()) or getattr(message, "responses", ()):
        yield from topic.partitions
        for partition in topic.partitions:
            leader = getattr(partition, "current_leader", None)
            if leader is not None:
                yield leader
