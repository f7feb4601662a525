# SPDX-License-Identifier: Apache-2.0
"""A quorum in virtual time, on networks and disks that fail, and the checks of what it must never do."""
