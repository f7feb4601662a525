# SPDX-License-Identifier: Apache-2.0
"""Producers and their transactions, within a segment and across segments."""
