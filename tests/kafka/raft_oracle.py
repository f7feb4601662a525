# SPDX-License-Identifier: Apache-2.0
"""Kafka's own raft client as an oracle: it and raftlog's core get the same inputs, and must do the same.

``raft/RaftOracle.java`` drives the client, without a network, by commands. Messages cross as bytes of the protocol.
"""

import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import attrs

from raftlog.records.messages.raft.raft_messages import (
    RAFT_MESSAGES,
    RaftMessage,
    RaftRequest,
    RaftResponse,
    read_rpc,
    write_rpc,
)
from tests.kafka import dump_tool
from tests.kafka.controller import NEWEST_RELEASE, install_jars
from tests.kafka.java_programs import compile_java
from tests.kafka.one_at_a_time import one_at_a_time
from tests.kafka.raft_coverage import agent_option

POM = Path(__file__).resolve().parent / "raft" / "pom.xml"

APIS = {
    "VOTE": "Vote",
    "BEGIN_QUORUM_EPOCH": "BeginQuorumEpoch",
    "END_QUORUM_EPOCH": "EndQuorumEpoch",
    "FETCH": "Fetch",
    "FETCH_SNAPSHOT": "FetchSnapshot",
    "DESCRIBE_QUORUM": "DescribeQuorum",
    "ADD_RAFT_VOTER": "AddRaftVoter",
    "REMOVE_RAFT_VOTER": "RemoveRaftVoter",
    "UPDATE_RAFT_VOTER": "UpdateRaftVoter",
    "API_VERSIONS": "ApiVersions",
}
_KEYS = {name: key for key, name in APIS.items()}


def api_of(message: RaftMessage) -> str:
    """Return the name of a message's api, as Kafka writes it."""
    return _KEYS[type(message).__name__.removesuffix("Request").removesuffix("Response")]


def _read(api: str, suffix: str, version: str, data: str) -> Any:
    return read_rpc(RAFT_MESSAGES[APIS[api] + suffix], bytes.fromhex(data), int(version))


@attrs.frozen
class SentByKafka:
    """A request that Kafka's client has sent.

    Attributes:
        correlation_id: names it in the response.
        destination: id, host and port.
        version: in which it was sent.
        message: the request.
    """

    correlation_id: int
    destination: tuple[int, str, int]
    version: int
    message: RaftRequest


@attrs.frozen
class KafkaStep:
    """What Kafka's client did with an input.

    Attributes:
        state: the words of the state line, or empty.
        requests: that it sent.
        responses: that it sent, with the tokens of their requests.
        fatal: the error that it died of, or None.
        config: the words of the configuration line, or empty.
        called: what came of a call of the application: "done", the last offset of an append, or an exception.
        log: the start of the log, and its batches, if it was asked for.
        voters: kraft.version, and the voters, if the log was asked for.
        snapshots: the snapshots with their bytes, if the log was asked for.
    """

    state: tuple[str, ...] = ()
    requests: tuple[SentByKafka, ...] = ()
    responses: tuple[tuple[str, RaftResponse], ...] = ()
    fatal: str | None = None
    config: tuple[str, ...] = ()
    called: str = ""
    log: tuple[str, ...] = ()
    voters: tuple[str, ...] = ()
    snapshots: tuple[str, ...] = ()


class RaftOracle:
    """A JVM with Kafka's raft client. Close it, or use it as a context manager.

    Args:
        coverage: a file in which JaCoCo notes the branches that the JVM takes, or None.
    """

    def __init__(self, coverage: Path | None = None) -> None:
        agent = () if coverage is None else (agent_option(coverage),)
        self._process = subprocess.Popen(
            ["java", *dump_tool.JVM_OPTIONS, *agent, "-cp", self.prepare(), "org.apache.kafka.raft.RaftOracle"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    @staticmethod
    def prepare() -> str:
        """Fetch Kafka's jars and compile the driver, unless that is done, and return the class path."""
        jars = install_jars(POM, NEWEST_RELEASE)
        classes = jars.with_name("classes")
        joined = f"{classes}{os.pathsep}{jars}{os.sep}*"
        sources = sorted(POM.parent.glob("*.java"))
        compiled = classes / "compiled"
        with one_at_a_time():
            if not compiled.exists() or compiled.stat().st_mtime < max(each.stat().st_mtime for each in sources):
                compile_java(jars, classes, *sources)
                compiled.touch()
        return joined

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the JVM."""
        self._process.communicate()

    def request(self, token: str, api: str, version: int, data: bytes) -> KafkaStep:
        """Deliver a request, encoded in a version."""
        return self.run("request", api, version, token, data.hex())

    def respond(self, sent: SentByKafka, message: RaftResponse) -> KafkaStep:
        """Deliver the response to a request of Kafka's."""
        return self.run("response", sent.correlation_id, sent.version, write_rpc(message, sent.version).hex())

    def run(self, *words: object) -> KafkaStep:
        """Run a command, and return what came of it."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(" ".join(map(str, words)) + "\n")
        stdin.flush()
        step = KafkaStep()
        while (line := stdout.readline().rstrip("\n")) != ".":
            if not line:
                raise EOFError("the oracle has died")
            step = _with_line(step, line.split(" "))
        return step


def _with_line(step: KafkaStep, words: list[str]) -> KafkaStep:
    match words:
        case ["state", *rest]:
            return attrs.evolve(step, state=tuple(rest))
        case ["config", *rest]:
            return attrs.evolve(step, config=tuple(rest))
        case ["called", what]:
            return attrs.evolve(step, called=what)
        case ["log", *rest]:
            return attrs.evolve(step, log=tuple(rest))
        case ["voters", *rest]:
            return attrs.evolve(step, voters=tuple(rest))
        case ["snapshots", *rest]:
            return attrs.evolve(step, snapshots=tuple(rest))
        case ["fatal", *rest]:
            return attrs.evolve(step, fatal=" ".join(rest))
        case ["request", number, api, node, host, port, version, data]:
            message = _read(api, "Request", version, data)
            sent = SentByKafka(int(number), (int(node), host, int(port)), int(version), message)
            return attrs.evolve(step, requests=(*step.requests, sent))
        case ["response", token, api, version, data]:
            return attrs.evolve(step, responses=(*step.responses, (token, _read(api, "Response", version, data))))
    raise ValueError(words)
