# SPDX-License-Identifier: Apache-2.0
"""Asks MirrorMaker's replication policies of two releases about names, and keeps the answers for tests without Java.

    python -m tests.kafka.recorded_policies

writes tests/golden/mirror-names.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from tests.hang_limit import HANG_S
from tests.kafka.controller import install_jars
from tests.kafka.dump_tool import JVM_OPTIONS
from tests.kafka.java_programs import class_path
from tests.tools.mirrors.policy_names import ALIASED, ALIASES, NAMES, RELEASES, SETTINGS, Setting, lines_to_ask
from tests.tools.mirrors.policy_table import TABLE, Answer, as_line, to_json

_HERE = Path(__file__).resolve().parent / "mirror"


def answers(release: str, lines: Iterable[str]) -> list[Answer]:
    """Return what the policies of a release answer to lines (MirrorNames.java)."""
    classes = class_path(install_jars(_HERE / "pom.xml", release), _HERE / "MirrorNames.java")
    command = ["java", *JVM_OPTIONS, "-cp", classes, "MirrorNames"]
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(command, input=text, check=True, capture_output=True, encoding="utf-8", timeout=HANG_S)
    return [[_value(field) for field in line.split("\t")] for line in done.stdout.removesuffix("\n").split("\n")]


def _value(field: str) -> str | None:
    return None if field == "~" else field.removeprefix("=")


def table() -> str:
    """Return the table as the releases fill it now."""
    return "".join(_table_lines())


def _table_lines() -> Iterator[str]:
    asked = [line for setting in SETTINGS for line in lines_to_ask(setting)]
    of_each = [iter(answers(release, asked)) for release in RELEASES]
    for setting in SETTINGS:
        yield to_json(_members(setting))
        for question in [*((name,) for name in NAMES), *((alias, topic) for alias in ALIASES for topic in ALIASED)]:
            yield as_line(question, [next(each) for each in of_each])


def _members(setting: Setting) -> dict[str, str | bool | None]:
    return attrs.asdict(setting, filter=lambda _, value: value is not None)


def main() -> int:
    """Write the table and its manifest."""
    text = table()
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text(text, "utf-8")
    manifest = {
        "kafka": list(RELEASES),
        "made_by": "python -m tests.kafka.recorded_policies",
        "classes": [
            "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
            "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
            "org.apache.kafka.connect.mirror.DefaultTopicFilter",
            "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        ],
        "files": {TABLE.name: {"sha256": hashlib.sha256(text.encode()).hexdigest()}},
    }
    (TABLE.parent / "manifest.json").write_text(to_json(manifest), "utf-8")
    sys.stdout.write(f"{len(text.splitlines())} lines{os.linesep}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
