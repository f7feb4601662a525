# SPDX-License-Identifier: Apache-2.0
"""Copies of the wire schemas, one line a field."""
