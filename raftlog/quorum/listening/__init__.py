# SPDX-License-Identifier: Apache-2.0
"""Listeners: committed records and snapshots are delivered to them, and they are told of leaders."""
