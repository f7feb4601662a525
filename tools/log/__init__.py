# SPDX-License-Identifier: Apache-2.0
"""The verb log: making, writing and showing a log directory."""
