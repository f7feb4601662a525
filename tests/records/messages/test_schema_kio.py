# SPDX-License-Identifier: Apache-2.0
"""Messages against kio, an independent implementation: the same bytes."""

import io
import re
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.messages.schema import MessageType
from tests.records.schema_strategies import ALL_VERSIONS, messages

serial = pytest.importorskip("kio.serial")

WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


def kio_type(kind: MessageType, version: int) -> Any:
    """Give kio's class for one version of a message, or None."""
    message = kind.name.removesuffix("Request").removesuffix("Response") if kind.schema.kind == "rpc" else kind.name
    module = WORD_START.sub("_", message).lower()
    try:
        return getattr(import_module(f"kio.schema.{module}.v{version}"), kind.name)
    except ImportError:
        return None


KNOWN = [(kind, version, found) for kind, version in ALL_VERSIONS if (found := kio_type(kind, version))]


@pytest.mark.parametrize(
    ("kind", "version", "entity"), KNOWN, ids=[f"{kind.name}-{version}" for kind, version, _ in KNOWN]
)
@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_kio_reads_and_writes_the_same_bytes(kind: MessageType, version: int, entity: Any, data: st.DataObject) -> None:
    """Kio reads all of what we wrote, and writes it again as it was."""
    written = kind.write(data.draw(messages(kind, version, plain=True)), version=version)
    value, size = serial.entity_reader(entity)(written, 0)
    assert size == len(written)
    again = io.BytesIO()
    serial.entity_writer(entity)(again, value)
    assert again.getvalue() == written


def test_kio_has_most_messages() -> None:
    """The comparison covers all requests, responses and control records but ApiVersions 5, which kio lacks."""
    wanted = {(kind.name, version) for kind, version in ALL_VERSIONS if kind.schema.kind in ("rpc", "header", "data")}
    compared = {(kind.name, version) for kind, version, _ in KNOWN}
    assert wanted - compared == {("ApiVersionsRequest", 5), ("ApiVersionsResponse", 5)}
