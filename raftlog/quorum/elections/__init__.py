# SPDX-License-Identifier: Apache-2.0
"""Elections: votes, and the announcements that a leader begins or ends an epoch."""
