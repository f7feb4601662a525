# SPDX-License-Identifier: Apache-2.0
"""Who voted and led from which offset on, and where replicas differ, from evidence."""
