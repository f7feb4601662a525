# SPDX-License-Identifier: Apache-2.0
"""What a replica's log has refused, and how long the replica holds back therefore."""
