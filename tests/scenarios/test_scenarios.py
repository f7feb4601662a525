# SPDX-License-Identifier: Apache-2.0
"""Every scenario prints what its file says, in each form of its world."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.scenarios.playing import RECORD_OPTION, check, record
from tests.scenarios.scenario_text import parse, write
from tests.scenarios.world import World
from tests.scenarios.worlds.application_world import APPLICATION_WORLDS
from tests.scenarios.worlds.audit_world import AUDIT_WORLDS
from tests.scenarios.worlds.election_world import ELECTION_WORLDS
from tests.scenarios.worlds.failure_world import FAILURE_WORLDS
from tests.scenarios.worlds.log_world import LOG_WORLDS
from tests.scenarios.worlds.recovery_world import RECOVERY_WORLDS
from tests.scenarios.worlds.snapshot_fetch_world import SNAPSHOT_FETCH_WORLDS
from tests.scenarios.worlds.snapshot_world import SNAPSHOT_WORLDS
from tests.scenarios.worlds.upgrade_world import UPGRADE_WORLDS
from tests.scenarios.worlds.voter_change_world import VOTER_CHANGE_WORLDS
from tests.scenarios.worlds.voter_world import VOTER_WORLDS

HERE: Final = Path(__file__).parent
WORLDS: Final[dict[str, dict[str, Callable[[], World]]]] = {
    "audit": AUDIT_WORLDS,
    "disk": APPLICATION_WORLDS,
    "elections": ELECTION_WORLDS,
    "failures": FAILURE_WORLDS,
    "joining": UPGRADE_WORLDS,
    "leading": ELECTION_WORLDS,
    "listeners": APPLICATION_WORLDS,
    "log": LOG_WORLDS,
    "reads": APPLICATION_WORLDS,
    "recovery": RECOVERY_WORLDS,
    "snapshot-fetch": SNAPSHOT_FETCH_WORLDS,
    "resigning": APPLICATION_WORLDS,
    "snapshots": SNAPSHOT_WORLDS,
    "upgrade": UPGRADE_WORLDS,
    "voter-changes": VOTER_CHANGE_WORLDS,
    "voters": VOTER_WORLDS,
}
"""By the folder of a scenario: the forms of its world, by name. The first one records."""

FILES: Final = sorted(HERE.glob("*/*.txt"))
CASES: Final = [
    pytest.param(path, form, id=f"{path.parent.name}/{path.stem}[{form}]")
    for path in FILES
    for form in WORLDS[path.parent.name]
]


@pytest.mark.parametrize(("path", "form"), CASES)
def test_scenario(path: Path, form: str, request: pytest.FixtureRequest) -> None:
    """Each step prints what the file says; with the option, the file says what each step prints."""
    forms = WORLDS[path.parent.name]
    if request.config.getoption(RECORD_OPTION):
        if form != next(iter(forms)):
            pytest.skip("the first form of a world records; run again to compare the others")
        record(path, forms[form])
        return
    check(parse(path.read_text("utf-8"), str(path.relative_to(HERE.parents[1]))), forms[form]())


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_scenarios_are_written_as_recording_writes_them(path: Path) -> None:
    """A recording changes outputs, and neither spaces nor blank lines; a comment on top says what is shown."""
    text = path.read_text("utf-8")
    assert write(parse(text)) == text
    assert text.startswith("# ")


def test_the_example_of_the_readme_passes() -> None:
    """The scenario that tests/README.md shows is one."""
    readme = (HERE.parent / "README.md").read_text("utf-8")
    example = readme.partition("```\n")[2].partition("```")[0]
    check(parse(example, "tests/README.md"), LOG_WORLDS["memory"]())


def test_every_world_has_scenarios() -> None:
    """No folder of scenarios is forgotten, and no world is without one."""
    assert {path.parent.name for path in FILES} == set(WORLDS)
