# SPDX-License-Identifier: Apache-2.0
"""The files of one log: segments, their sparse indexes, and the list of them."""
