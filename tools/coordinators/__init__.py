# SPDX-License-Identifier: Apache-2.0
"""Groups, committed offsets and transactions, as the records of the coordinators' topics say at an offset."""
