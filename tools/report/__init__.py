# SPDX-License-Identifier: Apache-2.0
"""The report of an audit: one HTML page that needs nothing else, made of what surveys and judgements say."""
