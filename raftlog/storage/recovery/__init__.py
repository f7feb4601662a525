# SPDX-License-Identifier: Apache-2.0
"""Startup recovery: what opening a directory does before its log is used."""
