# SPDX-License-Identifier: Apache-2.0
"""Salvage: from damaged replicas of a metadata log, the longest log that can be vouched for."""
