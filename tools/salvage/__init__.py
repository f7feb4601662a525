# SPDX-License-Identifier: Apache-2.0
"""Salvage: from damaged replicas of the metadata or a topic, the longest log that can be vouched for."""
