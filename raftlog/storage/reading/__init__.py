# SPDX-License-Identifier: Apache-2.0
"""Reads files that another process may be writing: local files, pipes and remote files, and whole segments."""
