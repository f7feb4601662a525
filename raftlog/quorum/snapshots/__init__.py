# SPDX-License-Identifier: Apache-2.0
"""Snapshots in any role: those that the application writes, and cleaning, which deletes old ones."""
