# SPDX-License-Identifier: Apache-2.0
"""Replication from the follower's side."""
