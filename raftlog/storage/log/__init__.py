# SPDX-License-Identifier: Apache-2.0
"""``FileLog``, the log in files, and the guard that makes it fail-stop."""
