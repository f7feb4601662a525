# SPDX-License-Identifier: Apache-2.0
"""Checks that a Spark master can be reached, since Spark itself takes over a minute to report that it cannot."""

import re
import socket
from typing import Final
from urllib.parse import urlsplit

from raftlog.errors import SparkJobError

_FORMS: Final = re.compile(r"local(\[.*\])?|local-cluster\[.*\]|yarn|(spark|k8s|sc)://.+")
_STANDALONE: Final = "spark://"
_TIMEOUT_S: Final = 10.0


def check_master(master: str) -> None:
    """Check that a master has a form that Spark knows and, if it is a standalone one, that it accepts connections.

    Args:
        master: a URL; a standalone one may name several masters, separated by commas. One that accepts is enough.

    Raises:
        SparkJobError: the form is unknown, or no master accepts a connection.
    """
    work = f"starting on {master}"
    if _FORMS.fullmatch(master) is None:
        raise SparkJobError(
            work, "the master must be one of local[N], spark://HOST:PORT, sc://HOST, yarn and k8s://URL"
        )
    if not master.startswith(_STANDALONE):
        return
    refused = []
    for address in master.removeprefix(_STANDALONE).split(","):
        try:
            parts = urlsplit(f"{_STANDALONE}{address}")
            with socket.create_connection((parts.hostname or "", parts.port or 0), _TIMEOUT_S):
                return
        except (OSError, ValueError) as error:  # A ValueError means an invalid port or address.
            refused.append(f"{address}: {getattr(error, 'strerror', None) or error}")
    raise SparkJobError(work, f"no master can be reached: {'; '.join(refused)}")
