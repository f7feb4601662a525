# SPDX-License-Identifier: Apache-2.0
"""The oracle for checkpoints translates offsets as MirrorMaker's own store of offset syncs does."""

import random
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest

from raftlog.tools.mirrors.comparing.lifetimes import Sync
from tests.hang_limit import HANG_S
from tests.kafka import dump_tool
from tests.kafka.controller import install_jars
from tests.kafka.java_programs import class_path
from tests.tools.mirrors.following.offset_sync_store import ThinnedSyncs

pytestmark = dump_tool.marks("Kafka's MirrorMaker")

RELEASES: Final = ("3.9.1", "4.3.1")
PROGRAM: Final = "org.apache.kafka.connect.mirror.MirrorTranslations"
STORES: Final = 1000
INT64_END: Final = 1 << 63
STEPS: Final = (2, 12, 100, 1 << 20, 1 << 57)
"""How far syncs are apart at most; the largest make the store's bounds overflow."""
_HERE: Final = Path(__file__).resolve().parent / "mirror"


def answers(release: str, lines: Iterable[str]) -> list[str]:
    """Return what the store of a release answers (MirrorTranslations.java), which also checks its own invariants."""
    classes = class_path(install_jars(_HERE / "pom.xml", release), _HERE / "MirrorTranslations.java")
    command = ["java", "-ea", *dump_tool.JVM_OPTIONS, "-cp", classes, PROGRAM]
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(command, input=text, check=True, capture_output=True, encoding="ascii", timeout=HANG_S)
    return done.stdout.split()


def upstream_offsets(drawn: random.Random, step: int) -> Iterator[int]:
    """Yield offsets that rise, seldom stay, and now and then go back."""
    upstream = drawn.choice((0, 5, 1 << 40))
    for _ in range(drawn.randrange(100)):
        if drawn.random() < 0.02:
            upstream = drawn.randrange(upstream + 1)
        else:
            upstream += drawn.choice((0, 1, step, drawn.randrange(step), drawn.randrange(step)))
        if upstream < INT64_END:
            yield upstream


def conversation(drawn: random.Random) -> Iterator[tuple[str, str | None]]:
    """Yield lines for one store, and our answer to those that ask."""
    must_read_to_end = drawn.random() < 0.5
    store = ThinnedSyncs(keeps_last_only=must_read_to_end)
    yield f"new {must_read_to_end}", None
    step, loading, downstream = drawn.choice(STEPS), drawn.randrange(30), 0
    for number, upstream in enumerate(upstream_offsets(drawn, step)):
        if number == loading:
            store.keeps_last_only = False
            yield "loaded", None
        downstream += drawn.randrange(12)
        store.add(Sync(upstream, downstream, 1, number))
        yield f"sync {upstream} {downstream}", None
        if number >= loading:
            wanted = min(drawn.randrange(upstream + step), INT64_END - 1)
            yield f"ask {wanted}", str(store.translated(wanted)).lower()


@pytest.mark.parametrize("release", RELEASES)
def test_the_oracle_translates_as_each_release_does(release: str) -> None:
    """Stores that load, that go back, and whose offsets are as large as they can be."""
    drawn = random.Random(22)
    lines = [line for _ in range(STORES) for line in conversation(drawn)]
    expected = [answer for _, answer in lines if answer is not None]
    assert len(expected) > 10 * STORES
    assert answers(release, (line for line, _ in lines)) == expected
