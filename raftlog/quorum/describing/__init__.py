# SPDX-License-Identifier: Apache-2.0
"""Views of a quorum: for peers and tools that ask its leader, and for the process that a replica runs in."""
