# SPDX-License-Identifier: Apache-2.0
"""The verb ``snapshot``: the cluster at an offset as a snapshot of the metadata log."""
