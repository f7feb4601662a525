# SPDX-License-Identifier: Apache-2.0
"""Compares the records of a partition with those of its mirror. Pure: it is given rows, and no files."""
