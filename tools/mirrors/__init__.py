# SPDX-License-Identifier: Apache-2.0
"""Mirrors: which topic is whose, and whether a mirror holds what its source holds."""
