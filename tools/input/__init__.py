# SPDX-License-Identifier: Apache-2.0
"""Finds the files that a command reads, and accounts for the bytes of each."""
