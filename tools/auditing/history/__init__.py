# SPDX-License-Identifier: Apache-2.0
"""Derives from evidence who voted and led from which offset on, and where replicas differ."""
