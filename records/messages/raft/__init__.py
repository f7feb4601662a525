# SPDX-License-Identifier: Apache-2.0
"""The RPCs of raft as typed values; start with ``raft_messages``."""
