# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: ``RAFTLOG_MUTANT=name python -m pytest -p tests.mutants.plugin`` runs tests of a mutant.

It is loaded before any test, so that what tests import is the wrong version already.
"""

import os

from tests.mutants.catalogue import MUTANTS, VARIABLE

if name := os.environ.get(VARIABLE):
    MUTANTS[name].plant()
