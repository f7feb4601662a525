# SPDX-License-Identifier: Apache-2.0
"""The label of a severity in a report: its shape and its name."""

import functools
from typing import Final

from raftlog.records.rules import Severity
from raftlog.tools.report.markup import Markup, element

_SIGNS: Final = {
    Severity.HARMLESS: "■",
    Severity.SUSPICIOUS: "◆",
    Severity.DAMAGED: "▲",
    Severity.DATA_LOSS: "✖",
}


@functools.cache
def severity_label(severity: Severity) -> Markup:
    """Return the name of a severity with its shape, the same as in figures."""
    sign = element("span", _SIGNS[severity], aria_hidden="true")
    return element("span", sign, severity.value, class_=f"severity {severity.value}")
