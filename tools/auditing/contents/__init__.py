# SPDX-License-Identifier: Apache-2.0
"""What records of a raft log are about, for operators who must decide about them."""
