# SPDX-License-Identifier: Apache-2.0
"""The rules that bytes, files and replicas must keep, and the findings that cite them."""
