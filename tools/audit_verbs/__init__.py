# SPDX-License-Identifier: Apache-2.0
"""The verbs that use the audit: verify, audit, diff, voters, epochs and quorum."""
