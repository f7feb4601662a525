# SPDX-License-Identifier: Apache-2.0
"""The audit on Spark: its engine on the driver, and the work of its tasks."""
