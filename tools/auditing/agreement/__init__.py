# SPDX-License-Identifier: Apache-2.0
"""What files of several nodes, partitions or log directories must agree on, and how it is told once."""
