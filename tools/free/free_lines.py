# SPDX-License-Identifier: Apache-2.0
"""The output of ``raftlog free``: a table per step for people, or JSON lines."""

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

import attrs

from raftlog.tools.free.offers import CountedOffer, Kept
from raftlog.tools.terminal.json_lines import json_line, path_list_member, path_member
from raftlog.tools.terminal.standard_error import printable, unicode_text
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
    def lasting_bytes(self) -> int:
        """What comes free and is not taken again by the next startup."""
        return sum(each.freed_bytes for each in self.offers if each.offer.rule.step.is_lasting)

    @property
    def suffices(self) -> bool | None:
        """Whether as much as the user needs comes free, and stays free; None if that was not said."""
        return None if self.need_bytes is None else self.lasting_bytes >= self.need_bytes


def text_lines(plan: FreePlan) -> Iterator[str]:
    """Yield the lines for people. Paths are never cut, also on a narrow terminal: they are to be copied."""
    if plan.offers:
        first = "Nothing was removed. Stop the node first; then remove these in this order, and stop after any."
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
        for each in plan.kept:
            yield f"   {shell_word(each.path)}:"
            yield from fit_lines([f"      {each.reason}"])
    yield from ([""] if plan.offers or plan.kept else [])
    yield from fit_lines(_last_lines(plan))


def _rows(offers: Sequence[CountedOffer], width: int) -> Iterator[str]:
    """Yield a line per offer: what comes free, what has come free so far, and what to remove."""
    width = max(width, len(_COLUMNS[1]))
    yield f"   {_COLUMNS[0]:>{width}}  {_COLUMNS[1]:>{width}}"
    for each in offers:
        numbers = f"{each.freed_bytes:>{width}}  {each.total_bytes:>{width}}"
        slash = "/" if each.offer.is_directory else ""
        yield f"   {numbers}  {shell_word(each.offer.path + slash)}"
        for path in each.offer.others:
            yield f"   {'and':>{len(numbers)}}  {shell_word(path)}"


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
        lasting_bytes=plan.lasting_bytes,
        need_bytes=plan.need_bytes,
        suffices=plan.suffices,
    )


def _why(each: CountedOffer) -> str:
    offer = each.offer
    return f"{offer.rule.reason} ({offer.detail})" if offer.detail else offer.rule.reason


def shell_word(path: str) -> str:
    """Return a path as a word that a shell reads as this path, in one line and without invisible characters.

    Bytes that are not UTF-8, and invisible characters, are escaped in ``$'…'``, which bash, zsh and ksh know.
    """
    path = f"./{path}" if path.startswith("-") else path
    if printable(path) == path and unicode_text(path) == path:
        return shlex.quote(path)
    return f"$'{''.join(map(_shell_byte, os.fsencode(path)))}'"


def _shell_byte(byte: int) -> str:
    return chr(byte) if 0x20 <= byte < 0x7F and byte not in b"'\\" else f"\\{byte:03o}"


def _last_lines(plan: FreePlan) -> Iterable[str]:
    count = len(plan.offers)
    if plan.offers:
        yield f"{plan.total_bytes} bytes come free by {count} {'removal' if count == 1 else 'removals'}."
    else:
        yield "Nothing has to be removed." if plan.need_bytes == 0 else "Nothing to offer."
    files = [file for each in plan.offers for file in each.offer.files]
    if len({file.identity[0] for file in files}) > 1:
        yield "They are on several file systems, and the sums count all of them."
    if any(file.link_count > 1 for file in files):
        yield "A file with several names (hard links) comes free with the last of its names, and with none before."
    if again := plan.total_bytes - plan.lasting_bytes:
        yield f"The next startup takes {again} of them again; {plan.lasting_bytes} stay free."
    if plan.need_bytes is not None:
        missing = plan.need_bytes - plan.lasting_bytes
        yield (
            f"That is enough: {plan.need_bytes} are needed."
            if plan.suffices
            else f"That is not enough: {plan.need_bytes} are needed, {missing} more than what stays free."
        )
