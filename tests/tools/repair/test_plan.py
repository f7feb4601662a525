# SPDX-License-Identifier: Apache-2.0
"""The file of a plan: what is written is read again, and what was changed is refused."""

import json
import os
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import CorruptFileError, LogDirectoryError, StorageError, UnsupportedVersionError
from raftlog.tools.repair.plan import RepairPlan, load_plan
from raftlog.tools.repair.sources import Source, SourceFile


@attrs.frozen
class Content:
    """A content of a verb."""

    number: int
    texts: tuple[str, ...]
    pair: tuple[int, int] | None


NAMES = st.binary(min_size=1, max_size=20).map(os.fsdecode)
NUMBERS = st.integers(0, 2**63 - 1)
FILES = st.builds(SourceFile, NAMES, NUMBERS, NUMBERS, NUMBERS, st.integers(0, 2**32 - 1))
SOURCES = st.builds(Source, NAMES.map(lambda name: f"/{name}"), st.lists(FILES, max_size=3).map(tuple))
CONTENTS = st.builds(
    Content, st.integers(), st.lists(NAMES, max_size=3).map(tuple), st.none() | st.tuples(NUMBERS, NUMBERS)
)
PLANS = st.builds(RepairPlan.of, st.text(), st.lists(SOURCES, max_size=3).map(tuple), CONTENTS)


@given(st.lists(SOURCES, max_size=3).map(tuple), CONTENTS)
def test_a_plan_is_read_as_it_was_written(sources: tuple[Source, ...], content: Content) -> None:
    """Whatever names files have, also such that are not text, and whatever the verb says."""
    plan = RepairPlan.of("verb", sources, content)
    text = plan.to_json()
    assert text.isascii()
    read = RepairPlan.from_json(text)
    assert (read.verb, read.sources) == ("verb", sources)
    assert read.content_as(Content) == content


@given(PLANS, st.data())
def test_a_change_of_any_value_is_found(plan: RepairPlan, data: st.DataObject) -> None:
    """A plan with another value anywhere is refused; other blanks are not another value."""
    members = json.loads(plan.to_json())
    assert RepairPlan.from_json(json.dumps(members)) == RepairPlan.from_json(plan.to_json())
    name = data.draw(st.sampled_from(sorted(members)))
    members[name] = data.draw(st.sampled_from([[], {}, "x", 7, None]).filter(lambda value: value != members[name]))
    with pytest.raises((CorruptFileError, UnsupportedVersionError)):
        RepairPlan.from_json(json.dumps(members))


@given(PLANS, st.data())
def test_a_plan_that_is_cut_off_is_refused(plan: RepairPlan, data: st.DataObject) -> None:
    """A part of the text is no plan."""
    text = plan.to_json().rstrip()
    end = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(CorruptFileError):
        RepairPlan.from_json(text[:end])


@pytest.mark.parametrize(
    "content",
    [
        {"number": "x", "texts": [], "pair": None},
        {"number": 1, "pair": None},
        {"number": 1, "texts": [], "pair": None, "more": 1},
    ],
)
def test_a_content_of_another_kind_is_refused(content: dict[str, object]) -> None:
    """A plan whose content lacks a field, has another one, or has another value, is not of the verb."""
    with pytest.raises(CorruptFileError, match="not a plan of verb"):
        RepairPlan("verb", (), content).content_as(Content)


@pytest.mark.parametrize("content", [{"a": 1}, {"a": 2}, {}, {"a": 10}])
def test_a_file_replaces_nothing(content: dict[str, int], tmp_path: Path) -> None:
    """The same plan may be there; another plan, another file, a directory or a link to nowhere is not overwritten."""
    plan, other = RepairPlan("verb", (), {"a": 1}), RepairPlan("verb", (), content)
    path = tmp_path / "plan"
    plan.save(str(path))
    before = path.stat()
    if other == plan:
        other.save(str(path))
    else:
        with pytest.raises(LogDirectoryError, match=r"plan exists and is another plan: it is not overwritten"):
            other.save(str(path))
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert load_plan(str(path), "verb") == plan
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("file", "link", "."):
        with pytest.raises(LogDirectoryError, match="is not overwritten"):
            plan.save(str(tmp_path / name))
    with pytest.raises(StorageError):
        plan.save(str(tmp_path / "no" / "plan"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "link", "plan"]


def test_a_plan_of_another_verb_is_refused(tmp_path: Path) -> None:
    """A plan is carried out by the verb that made it; the error names the file."""
    path = str(tmp_path / "plan")
    RepairPlan("verb", (), {}).save(path)
    with pytest.raises(CorruptFileError, match="plan: a plan of verb, not of other"):
        load_plan(path, "other")
    Path(path).write_bytes(b"\xff")
    with pytest.raises(CorruptFileError, match="plan: not a plan"):
        load_plan(path, "verb")
