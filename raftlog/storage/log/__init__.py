# SPDX-License-Identifier: Apache-2.0
"""The log in files."""
