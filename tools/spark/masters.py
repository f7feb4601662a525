# SPDX-License-Identifier: Apache-2.0
"""Checks a master's address before Spark starts: Spark itself takes more than a minute to report a wrong one."""

import re
import socket
from typing import Final
from urllib.parse import urlsplit

from raftlog.errors import SparkJobError

_FORMS: Final = re.compile(r"local(\[.*\])?|local-cluster\[.*\]|yarn|(spark|k8s|sc)://.+")
_STANDALONE: Final = "spark://"
_TIMEOUT_S: Final = 10.0


def check_master(master: str) -> None:
    """Check that a master's URL has a form that Spark knows and that a standalone master accepts connections.

    Args:
        master: a URL. That of a standalone master may name several addresses, separated by commas; one has to answer.

    Raises:
        SparkJobError: the form is unknown, or no address answers.
    """
    work = f"starting on {master}"
    if _FORMS.fullmatch(master) is None:
        raise SparkJobError(work, "the master must be local[N], spark://HOST:PORT, sc://HOST, yarn or k8s://URL")
    if not master.startswith(_STANDALONE):
        return
    refused = []
    for address in master.removeprefix(_STANDALONE).split(","):
        try:
            parts = urlsplit(f"{_STANDALONE}{address}")
            with socket.create_connection((parts.hostname or "", parts.port or 0), _TIMEOUT_S):
                return
        except (OSError, ValueError) as error:  # An invalid port or address is a ValueError.
            refused.append(f"{address}: {getattr(error, 'strerror', None) or error}")
    raise SparkJobError(work, f"no master can be reached: {'; '.join(refused)}")
