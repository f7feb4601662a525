# SPDX-License-Identifier: Apache-2.0
"""A replicated log without files: its protocol, what every log decides alike, and the log in memory."""
