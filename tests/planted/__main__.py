# SPDX-License-Identifier: Apache-2.0
"""Plants every kind of fault at many places, says what was missed, and writes the table of docs/audit.md."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.planted.faults import FAULTS
from tests.planted.plant import Field
from tests.planted.table import PLACES, write_table


def main() -> int:
    """Plant faults; return 1 if one was missed, or something else was said."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("names", nargs="*", help="of kinds; without any, all are planted and the table is written")
    parser.add_argument("--places", type=int, default=PLACES, help="for each kind (default: %(default)s)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        field = Field(Path(directory))
        names = given.names or list(FAULTS)
        planted = [field.plant(FAULTS[name], place) for name in names for place in range(given.places)]
    wrong = [each for each in planted if not each.is_right]
    for each in wrong:
        print(each)
    print(f"{len(names)} kinds, {len(planted)} places, {len(wrong)} not as they should be")
    if not given.names:
        write_table(planted)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
