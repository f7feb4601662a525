# SPDX-License-Identifier: Apache-2.0
"""Follows a log that grows: what it has more, what it has lost, look by look."""
