# SPDX-License-Identifier: Apache-2.0
"""What the log directories of brokers and the metadata of their cluster say of each other, compared at one state."""
