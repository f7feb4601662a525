# SPDX-License-Identifier: Apache-2.0
"""What a replica keeps beside its log: whose directory it is, and its vote."""
