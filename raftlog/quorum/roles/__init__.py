# SPDX-License-Identifier: Apache-2.0
"""The roles of a replica in its quorum, and which role follows which."""
