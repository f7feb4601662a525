# SPDX-License-Identifier: Apache-2.0
"""Snapshot files over record batches."""
