# SPDX-License-Identifier: Apache-2.0
"""The verb that simulates quorums with faults."""
