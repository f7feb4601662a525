# SPDX-License-Identifier: Apache-2.0
"""Startup recovery: what opening a directory does after a crash, before its log is used."""
