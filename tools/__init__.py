# SPDX-License-Identifier: Apache-2.0
"""The command line, and what it is made of."""
