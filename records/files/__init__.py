# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the small files beside a log, and the names of all files."""
