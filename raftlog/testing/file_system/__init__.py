# SPDX-License-Identifier: Apache-2.0
"""A file system in memory that knows what survives a crash."""
