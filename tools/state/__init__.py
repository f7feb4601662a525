# SPDX-License-Identifier: Apache-2.0
"""The verb ``state``: the cluster as the metadata records of a log say at an offset or time."""
