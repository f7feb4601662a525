# SPDX-License-Identifier: Apache-2.0
"""Runs of the audit: engines, workers, tables of results and the evidence that is kept."""
