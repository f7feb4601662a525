# SPDX-License-Identifier: Apache-2.0
"""What the files of a quorum prove: what was committed, what may be missing, and which copy to go on from."""
