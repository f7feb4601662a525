# SPDX-License-Identifier: Apache-2.0
"""The output of ``raftlog free``: a table per step for people, or JSON lines."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

import attrs

from raftlog.file_paths import name_of
from raftlog.tools.free.offers import CountedOffer, Kept
from raftlog.tools.terminal.json_lines import json_line, path_list_member, path_member
from raftlog.tools.terminal.standard_error import printable
from raftlog.tools.terminal.text_width import fit_lines

_COLUMNS: Final = ("FREES", "SO FAR")


@attrs.frozen
class FreePlan:
    """What is to be shown.

    Attributes:
        offers: in the order in which to remove them.
        kept: what must stay, in order.
        need_bytes: how many bytes the user needs; None if that was not said.
    """

    offers: Sequence[CountedOffer]
    kept: Sequence[Kept]
    need_bytes: int | None = None

    @property
    def total_bytes(self) -> int:
        """What comes free by all offers."""
        return self.offers[-1].total_bytes if self.offers else 0

    @property
    def suffices(self) -> bool | None:
        """Whether that is as much as the user needs; None if that was not said."""
        return None if self.need_bytes is None else self.total_bytes >= self.need_bytes


def text_lines(plan: FreePlan) -> Iterator[str]:
    """Yield the lines for people. Paths are never cut, also on a narrow terminal: they are to be copied."""
    if plan.offers:
        first = "Nothing was removed. Stop the node first; then remove these in this order, and stop at any line."
        yield from fit_lines([first])
    for step, of_step in groupby(plan.offers, key=lambda each: each.offer.rule.step):
        yield ""
        yield from fit_lines([f"{step.number}. {step.value}:"])
        for why, offers in groupby(of_step, key=_why):
            yield ""
            yield from fit_lines([f"   {why}:"])
            yield from _rows(list(offers), len(str(plan.total_bytes)))
    if plan.kept:
        yield from [*([""] if plan.offers else []), "Never remove these:", ""]
        yield from fit_lines(f"   {each.path}: {each.reason}" for each in plan.kept)
    yield from ([""] if plan.offers or plan.kept else [])
    yield from fit_lines(_last_lines(plan))


def _rows(offers: Sequence[CountedOffer], width: int) -> Iterator[str]:
    """Yield a line per offer: what comes free, what has come free so far, and what to remove."""
    width = max(width, len(_COLUMNS[1]))
    yield f"   {_COLUMNS[0]:>{width}}  {_COLUMNS[1]:>{width}}"
    for each in offers:
        numbers = f"{each.freed_bytes:>{width}}  {each.total_bytes:>{width}}"
        yield f"   {numbers}  {printable(_what(each))}"


def json_lines(plan: FreePlan) -> Iterator[str]:
    """Yield the JSON lines (``docs/free-1.schema.json``)."""
    for number, each in enumerate(plan.offers, 1):
        offer = each.offer
        yield json_line(
            "offer",
            None,
            number=number,
            step=offer.rule.step.number,
            rule=offer.rule.id,
            **path_member("path", offer.path),
            **path_list_member("others", offer.others),
            is_directory=offer.is_directory,
            size_bytes=offer.size_bytes,
            freed_bytes=each.freed_bytes,
            total_bytes=each.total_bytes,
            reason=_why(each),
        )
    for kept in plan.kept:
        yield json_line("kept", None, **path_member("path", kept.path), reason=kept.reason)
    yield json_line(
        "free_summary",
        None,
        offers=len(plan.offers),
        total_bytes=plan.total_bytes,
        need_bytes=plan.need_bytes,
        suffices=plan.suffices,
    )


def _why(each: CountedOffer) -> str:
    offer = each.offer
    return f"{offer.rule.reason} ({offer.detail})" if offer.detail else offer.rule.reason


def _what(each: CountedOffer) -> str:
    suffixes = [f"+ .{name_of(path).partition('.')[2]}" for path in each.offer.others]
    return " ".join([each.offer.path, *suffixes])


def _last_lines(plan: FreePlan) -> Iterable[str]:
    yield f"{plan.total_bytes} bytes come free by {len(plan.offers)} removals." if plan.offers else "Nothing to offer."
    if plan.need_bytes is not None:
        yield (
            f"That is enough: {plan.need_bytes} are needed."
            if plan.suffices
            else (f"That is not enough: {plan.need_bytes} are needed, {plan.need_bytes - plan.total_bytes} more.")
        )
