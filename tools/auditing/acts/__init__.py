# SPDX-License-Identifier: Apache-2.0
"""What brokers' directories show: records of a metadata log that they have acted on, which are committed therefore."""
