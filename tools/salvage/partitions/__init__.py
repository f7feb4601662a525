# SPDX-License-Identifier: Apache-2.0
"""Salvage of a topic's partition: from damaged replicas, the log that the cluster's metadata vouch for."""
