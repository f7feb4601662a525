# SPDX-License-Identifier: Apache-2.0
"""What consensus allows, as pure functions: election states, votes and the high watermark."""
