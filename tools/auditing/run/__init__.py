# SPDX-License-Identifier: Apache-2.0
"""Runs the audit: engines, workers, tables of results and the store of evidence."""
