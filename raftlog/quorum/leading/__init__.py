# SPDX-License-Identifier: Apache-2.0
"""Replication from the leader's side."""
