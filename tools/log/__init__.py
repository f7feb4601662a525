# SPDX-License-Identifier: Apache-2.0
"""The verb log: makes, writes and shows a log directory."""
