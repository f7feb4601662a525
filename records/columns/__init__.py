# SPDX-License-Identifier: Apache-2.0
"""Many records at once: flat columns, Arrow tables and lazy records."""
