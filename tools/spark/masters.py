# SPDX-License-Identifier: Apache-2.0
"""Whether there can be a Spark where a user says: Spark itself takes more than a minute to say that there is none."""

import re
import socket
from typing import Final
from urllib.parse import urlsplit

from raftlog.errors import SparkJobError

_FORMS: Final = re.compile(r"local(\[.*\])?|local-cluster\[.*\]|yarn|(spark|k8s|sc)://.+")
_STANDALONE: Final = "spark://"
_TIMEOUT_S: Final = 10.0


def check_master(master: str) -> None:
    """Check that a master is of a form that Spark knows and, if it is a standalone one, that somebody listens.

    Args:
        master: a URL; a standalone one may name several, with commas between them, of which one is enough.

    Raises:
        SparkJobError: it is not, or nobody does.
    """
    work = f"starting on {master}"
    if _FORMS.fullmatch(master) is None:
        raise SparkJobError(work, "it is none of local[N], spark://HOST:PORT, sc://HOST, yarn and k8s://URL")
    if not master.startswith(_STANDALONE):
        return
    refused = []
    for address in master.removeprefix(_STANDALONE).split(","):
        try:
            parts = urlsplit(f"{_STANDALONE}{address}")
            with socket.create_connection((parts.hostname or "", parts.port or 0), _TIMEOUT_S):
                return
        except (OSError, ValueError) as error:  # A ValueError, of a port or an address that cannot be.
            refused.append(f"{address}: {getattr(error, 'strerror', None) or error}")
    raise SparkJobError(work, f"no master is reached: {'; '.join(refused)}")
