# SPDX-License-Identifier: Apache-2.0
"""The contents of an audit's ``summary.json``."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from raftlog.tools.auditing.run.rule_status import Check, CheckStatus
from raftlog.tools.catalogue.audit_columns import Row


def summary_of(run_id: str, run: Row, checks: Sequence[Check]) -> dict[str, Any]:
    """Return the summary of a run as JSON values: its row in ``runs``, and its checks: counts and those that failed.

    Args:
        run_id: of the run.
        run: its row.
        checks: the status of each rule.
    """
    times = {name: run[name].isoformat(timespec="milliseconds") for name in ("started", "finished")}
    by_status = Counter(check.status for check in checks)
    done = by_status[CheckStatus.PASS] + by_status[CheckStatus.FAIL]
    return {
        "run_id": run_id,
        "success": run["verdict"] == "clean",
        **run,
        **times,
        "statistics": {
            "evaluated": done,
            "successful": by_status[CheckStatus.PASS],
            "unsuccessful": by_status[CheckStatus.FAIL],
            "skipped": by_status[CheckStatus.SKIPPED],
            "errors": by_status[CheckStatus.ERROR],
            "success_percent": round(100 * by_status[CheckStatus.PASS] / done, 1) if done else None,
        },
        "failed": [
            {"rule": check.rule.id, "severity": check.rule.severity.value, "findings": check.finding_count}
            for check in checks
            if check.status is CheckStatus.FAIL
        ],
    }
