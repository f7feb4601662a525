# SPDX-License-Identifier: Apache-2.0
"""The wire format: bytes to batches, records, control records and messages, and back. No I/O."""
