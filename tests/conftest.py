# SPDX-License-Identifier: Apache-2.0
"""How many examples a property is tried with where it does not say so: ``HYPOTHESIS_PROFILE=thorough`` for more."""

import os

from hypothesis import settings

settings.register_profile("default", max_examples=40, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
