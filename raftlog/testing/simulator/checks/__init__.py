# SPDX-License-Identifier: Apache-2.0
"""What a quorum must never do, checked after every event from disks, messages and clients: without the core's code."""
