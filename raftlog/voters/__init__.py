# SPDX-License-Identifier: Apache-2.0
"""Voter sets as values, the changes of them that are allowed, and their history by offset."""
