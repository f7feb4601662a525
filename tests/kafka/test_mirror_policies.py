# SPDX-License-Identifier: Apache-2.0
"""MirrorMaker's policies, topic filter and source connector say of names what ours say."""

import random
from collections.abc import Iterable, Iterator
from typing import Final

import pytest

from tests.kafka import dump_tool
from tests.kafka.recorded_policies import answers, table
from tests.tools.mirrors.policy_names import ALIASED, ALIASES, NAMES, RELEASES, Setting, lines_to_ask
from tests.tools.mirrors.policy_table import TABLE, ours

pytestmark = dump_tool.marks("Kafka's MirrorMaker")

SETTINGS: Final = 60
DRAWN_NAMES: Final = 50
SEPARATORS: Final = (None, ".", "_", "-", "__", "..", ".-", "|", "$", "(", "\\Q", "\\E", "\\", "A", "internal")
PARTS: Final = (
    *(
        "A",
        "B",
        "C",
        "A.B",
        "orders",
        "tx",
        "heartbeats",
        "myheartbeats",
        "my",
        "mm2",
        "mm2-offset-syncs",
        "checkpoints",
    ),
    *("internal", "mm2-configs", "__consumer_offsets", "__", "", "", ".", "replica"),
)
FILTERS: Final = (None, "", ".*", "A.*|B.*", "orders , tx.*", r"[a-z]+\.\w*", "(?:my)?heartbeats,x{2}", r".*\bA\b.*")


def settings(drawn: random.Random) -> Iterator[tuple[Setting, tuple[str, ...]]]:
    """Yield settings, each with names that have its separator, and others'."""
    for _ in range(SETTINGS):
        setting = Setting(
            drawn.random() < 0.4,
            drawn.choice(SEPARATORS),
            drawn.choice((None, "true", "false")),
            drawn.choice((None, "A", "B")),
            drawn.choice(FILTERS),
            drawn.choice(FILTERS),
        )
        between = (setting.separator or ".", setting.separator or ".", ".", "_", "-", "")
        names = [
            "".join(drawn.choice(PARTS) + drawn.choice(between) for _ in range(drawn.randrange(5)))
            + drawn.choice(PARTS)
            for _ in range(DRAWN_NAMES)
        ]
        yield setting, tuple(names)


def test_the_table_is_what_the_releases_say_now() -> None:
    """Each answer of the checked-in table comes out again."""
    assert table() == TABLE.read_text("utf-8")


def differences(release: str, asked: Iterable[tuple[Setting, tuple[str, ...]]]) -> list[object]:
    """Return where we answer otherwise than a release: setting, question, its answer and ours."""
    drawn = list(asked)
    said = iter(answers(release, (line for setting, names in drawn for line in lines_to_ask(setting, names))))
    aliased = [(alias, topic) for alias in ALIASES for topic in ALIASED]
    wrong: list[object] = []
    for setting, names in drawn:
        for question in [*((name,) for name in names), *aliased]:
            answer, expected = ours(setting, RELEASES[release], question), next(said)
            if answer != expected:
                wrong.append((setting, question, expected, answer))
    assert next(said, None) is None
    return wrong


@pytest.mark.parametrize("release", RELEASES)
def test_generated_names_have_the_answers_of_each_release(release: str) -> None:
    """Under settings that the table does not have, for names of all parts that matter."""
    wrong = differences(release, settings(random.Random(22)))
    assert not wrong, wrong[:3]


def test_heartbeats_are_not_mirrored_if_that_is_off() -> None:
    """In the release that has the setting: they then need the filter, as all topics do."""
    given = [
        Setting(topics=topics, exclude=exclude, heartbeats=heartbeats)
        for topics in ("", "A.*", None)
        for exclude in ("", ".*beats")
        for heartbeats in ("true", "false")
    ]
    wrong = differences("4.3.1", ((setting, NAMES) for setting in given))
    assert not wrong, wrong[:3]
