# SPDX-License-Identifier: Apache-2.0
"""The verbs that use the audit: verify, audit, voters, epochs and quorum."""
