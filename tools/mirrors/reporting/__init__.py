# SPDX-License-Identifier: Apache-2.0
"""What ``raftlog verify-mirror`` leaves behind: a page for the operator who fails over, and tables."""
