# SPDX-License-Identifier: Apache-2.0
"""Surveys: one file, or a segment with its indexes, as evidence."""
