# SPDX-License-Identifier: Apache-2.0
"""The RPCs of raft as typed values; ``raft_messages`` is the door."""
