# SPDX-License-Identifier: Apache-2.0
"""Which files a command reads, and how much of each was covered."""
