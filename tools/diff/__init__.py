# SPDX-License-Identifier: Apache-2.0
"""The verb ``diff``: where replicas differ, and which records do."""
