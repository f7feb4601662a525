# SPDX-License-Identifier: Apache-2.0
"""MirrorMaker: whose topic a name is, and whether a mirror holds what its source holds."""
