# SPDX-License-Identifier: Apache-2.0
"""The cluster as the records of ``__cluster_metadata`` say at an offset."""
