# SPDX-License-Identifier: Apache-2.0
"""Reading files that somebody else may write: local ones, pipes and remote ones, and whole segments of them."""
