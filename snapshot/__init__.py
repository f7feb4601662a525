# SPDX-License-Identifier: Apache-2.0
"""Writes, reads and verifies snapshot files, which consist of record batches."""
