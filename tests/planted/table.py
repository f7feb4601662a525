# SPDX-License-Identifier: Apache-2.0
"""The table of docs/audit.md: of each kind of fault, by which rule it is to be found, and how often it was."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from tests.checkout import ROOT
from tests.planted.fault import Fault
from tests.planted.faults import SUBJECTS
from tests.planted.plant import Planted

DOCUMENT: Final = ROOT / "docs" / "audit.md"
PLACES: Final = 12
"""At how many places each kind is planted for the table."""

_TABLE: Final = re.compile(r"(<!-- planted faults -->\n).*?(<!-- end of planted faults -->\n)", re.DOTALL)
_ROW: Final = re.compile(r"^\| `([a-z0-9-]+)` \| (.*?) \| (.*?) \| (\d+) \| (\d+) \| (\d+) \|$", re.MULTILINE)


@attrs.frozen
class Row:
    """A kind of fault, and its results.

    Attributes:
        name: of the kind.
        what: the damage.
        rules: the rules that may report it, as text.
        planted: number of places.
        found: number of places at which it was found.
        false_alarms: number of other findings.
    """

    name: str
    what: str
    rules: str
    planted: int
    found: int
    false_alarms: int

    @classmethod
    def of(cls, fault: Fault, planted: Sequence[Planted]) -> "Row":
        """Return the row of a kind."""
        found = sum(each.found is not None for each in planted)
        alarms = sum(len(each.false_alarms) for each in planted)
        return cls(fault.name, fault.what, rules_text(fault), len(planted), found, alarms)

    def __str__(self) -> str:
        return f"| `{self.name}` | {self.what} | {self.rules} | {self.planted} | {self.found} | {self.false_alarms} |"


def rules_text(fault: Fault) -> str:
    """Return the rules of a kind, as the table has them."""
    return ", ".join(f"`{rule}`" for rule in fault.rules)


def write_table(planted: Iterable[Planted]) -> None:
    """Put a table of what was planted in place of the one in the document."""
    by_name: dict[str, list[Planted]] = {}
    for each in planted:
        by_name.setdefault(each.fault.name, []).append(each)
    text = "".join(f"{line}\n" for line in _lines(by_name))
    document, count = _TABLE.subn(lambda match: match[1] + text + match[2], DOCUMENT.read_text())
    assert count == 1
    DOCUMENT.write_text(document)


def read_table() -> list[Row]:
    """Return the rows of the table in the document."""
    rows = _ROW.findall(DOCUMENT.read_text())
    return [Row(name, what, rules, *map(int, counts)) for name, what, rules, *counts in rows]


def _lines(planted: dict[str, list[Planted]]) -> Iterator[str]:
    total = [each for of_kind in planted.values() for each in of_kind]
    found = sum(each.found is not None for each in total)
    alarms = sum(len(each.false_alarms) for each in total)
    yield f"{len(planted)} kinds at {len(total)} places: {found} found, {alarms} false alarms."
    for subject in SUBJECTS:
        yield ""
        yield f"**{subject.subject.capitalize()}**"
        yield ""
        yield "| kind | what is done | found by | planted | found | false alarms |"
        yield "|---|---|---|---:|---:|---:|"
        for fault in subject:
            yield str(Row.of(fault, planted[fault.name]))
