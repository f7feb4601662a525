# SPDX-License-Identifier: Apache-2.0
"""Rows and columns of the data source, without Spark."""
