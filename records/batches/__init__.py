# SPDX-License-Identifier: Apache-2.0
"""Record batches: views of stored batches, and their readers and writers."""
