# SPDX-License-Identifier: Apache-2.0
"""Draws the roles of docs/quorum.md from the table of transitions: ``python -m tests.quorum.roles.role_diagram``."""

import re
from collections import defaultdict
from typing import Final

from raftlog.quorum.roles.transitions import TRANSITIONS
from tests.checkout import ROOT

PAGE: Final = ROOT / "docs" / "quorum.md"
_BLOCK: Final = re.compile(r"```mermaid\n.*?```\n", re.DOTALL)
_WORD_START: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def diagram() -> str:
    """Return the diagram, in Mermaid's notation: an arrow per pair of roles, with the events that lead along it."""
    events: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (role, event), (_, targets) in TRANSITIONS.items():
        for target in targets:
            events[role.__name__, target.__name__].append(_WORD_START.sub(" ", event.__name__).lower())
    arrows = [f"    {role} --> {target}: {', '.join(names)}" for (role, target), names in events.items()]
    return "\n".join(["```mermaid", "stateDiagram-v2", "    [*] --> Unattached", *arrows, "```", ""])


def with_diagram(page: str) -> str:
    """Return the page with the diagram in its place."""
    return _BLOCK.sub(lambda _: diagram(), page, count=1)


if __name__ == "__main__":
    PAGE.write_text(with_diagram(PAGE.read_text("utf-8")), "utf-8")
