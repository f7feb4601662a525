# SPDX-License-Identifier: Apache-2.0
"""Reads parts of logs as Arrow batches for the data source; nothing here imports Spark."""
