# SPDX-License-Identifier: Apache-2.0
"""Detectors of what is wrong within the batches of a segment."""
