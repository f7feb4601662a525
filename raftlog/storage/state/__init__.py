# SPDX-License-Identifier: Apache-2.0
"""The state that a replica keeps beside its log: the owner of the directory, and its vote."""
