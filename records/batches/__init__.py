# SPDX-License-Identifier: Apache-2.0
"""Record batches: views of stored ones, and what reads and writes them."""
