# SPDX-License-Identifier: Apache-2.0
"""The report of an audit: one self-contained HTML page, made from evidence and findings."""
