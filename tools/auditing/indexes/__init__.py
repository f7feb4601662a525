# SPDX-License-Identifier: Apache-2.0
"""Detectors of faults in the index files of a segment."""
