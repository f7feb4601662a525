# SPDX-License-Identifier: Apache-2.0
"""The rules of consensus as pure functions: election states, votes and the high watermark."""
