# SPDX-License-Identifier: Apache-2.0
"""What tests of a replicated log need, for users too: a file system that crashes, strategies, and invariants."""
