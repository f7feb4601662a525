# SPDX-License-Identifier: Apache-2.0
"""Requests and responses of Kafka's own: bodies that its classes wrote, and the frames of a recorded quorum."""

import json
from collections.abc import Iterator

from raftlog.records.messages.rpc import read_correlation_id
from tests.checkout import ROOT
from tests.golden_files import GOLDEN

# Other parties of that quorum spoke too: brokers register, and controllers describe the cluster.
OTHER_API_KEYS = {58, 60, 62, 63, 70}

BODIES = [
    tuple(line.split())
    for line in (ROOT / "tests" / "records" / "messages" / "rpc_bodies.txt").read_text().splitlines()
    if not line.startswith("#")
]
"""The name of a message, its version, and its bytes in hex digits."""


def recorded_frames() -> Iterator[tuple[str, int, int, bytes]]:
    """Yield ``request`` or ``response``, the api key, the version and the frame, for each frame between controllers."""
    lines = (GOLDEN / "wire" / "frames.jsonl").read_text().splitlines()
    recorded = [(frame, bytes.fromhex(frame["frame"])) for frame in map(json.loads, lines)]
    asked: dict[tuple[str, int], tuple[int, int]] = {}
    for frame, data in recorded:
        if frame["way"] == "request":
            api_key, version, correlation_id = (int.from_bytes(data[a:b], "big") for a, b in ((0, 2), (2, 4), (4, 8)))
            asked[frame["connection"], correlation_id] = api_key, version
            if api_key not in OTHER_API_KEYS:
                yield "request", api_key, version, data
    for frame, data in recorded:
        if frame["way"] == "response":
            api_key, version = asked[frame["connection"], read_correlation_id(data)]
            if api_key not in OTHER_API_KEYS:
                yield "response", api_key, version, data
