# SPDX-License-Identifier: Apache-2.0
"""The audit's engine on Spark."""
