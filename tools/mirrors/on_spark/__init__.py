# SPDX-License-Identifier: Apache-2.0
"""Reads logs of mirrors and their sources on Spark, as parts of segments; the comparison itself stays where it is."""
