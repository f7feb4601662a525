# SPDX-License-Identifier: Apache-2.0
"""Plans when an observer becomes a voter, and when it stops being one: pure functions of a leader's status."""
