# SPDX-License-Identifier: Apache-2.0
"""The seam between the consensus core and its driver: views that come in, and effects that go out."""
