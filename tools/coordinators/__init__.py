# SPDX-License-Identifier: Apache-2.0
"""Groups, committed offsets, transactions and share partitions, as the coordinators' topics say at an offset."""
