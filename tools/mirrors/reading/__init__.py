# SPDX-License-Identifier: Apache-2.0
"""Reads the logs of two clusters for the comparison of topics with their mirrors."""
