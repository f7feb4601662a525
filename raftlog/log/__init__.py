# SPDX-License-Identifier: Apache-2.0
"""A replicated log without files: its protocol, the decisions that every log shares, and the log in memory."""
