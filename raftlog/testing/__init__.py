# SPDX-License-Identifier: Apache-2.0
"""Tools to test replicated logs, for users too: a file system that crashes, crash points, strategies and contracts."""
