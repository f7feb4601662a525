# SPDX-License-Identifier: Apache-2.0
"""Detectors of what is wrong in the index files of a segment."""
