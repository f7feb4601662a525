# SPDX-License-Identifier: Apache-2.0
"""The log in files, and its recovery. Everything here does I/O."""
